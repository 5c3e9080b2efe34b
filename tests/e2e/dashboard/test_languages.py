"""The dashboard in the language that a browser prefers, or that was chosen in it."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.dashboard.test_accessibility import faults
from tests.support.live import Live
from tests.support.scripted import Agent
from torchyard import wire

pytestmark = pytest.mark.browser
SHORT_OF_MEMORY = re.compile("GPU 显存.或作业分到的份额 gpu_share.不足")
Submit = Callable[..., dict[str, Any]]
LANGUAGE = "document.documentElement.lang"


@pytest.fixture
def chinese(browser: Browser, live_service: Live) -> Iterator[Page]:
    """A page of somebody who is not signed in and whose browser prefers Chinese."""
    context = browser.new_context(base_url=live_service.url, locale="zh-CN")
    yield context.new_page()
    context.close()


def sign_in(page: Page, service: Live) -> None:
    code = service.client.post("/api/v1/session/codes").raise_for_status().json()["code"]
    page.goto("about:blank")
    page.goto(f"/#login={code}")


def test_browser_that_prefers_chinese_gets_it_and_reads_why_a_job_waits_or_runs(
    chinese: Page, live_service: Live, node: Agent, submit: Submit
) -> None:
    holder, waiter = submit(name="holder", resources={"gpus": 4}), submit(name="waiter")
    run = node.start()
    run.report(range(20), total_steps=50, train__loss=0.5)
    sign_in(chinese, live_service)
    expect(chinese.get_by_role("navigation").get_by_role("link", name="首页")).to_be_visible()
    expect(chinese.get_by_text("等待中").first).to_be_visible()
    assert chinese.evaluate(LANGUAGE) == "zh-CN"
    why = chinese.get_by_role("region", name="原因")
    chinese.get_by_role("table").get_by_role("link", name="waiter").click()
    expect(why).to_contain_text(f"作业 {waiter['number']} 排在第 1 位")
    expect(chinese.locator(".facts")).to_contain_text("普通")
    expect(why).to_contain_text("作业需要 1 个")
    expect(why).to_contain_text(f"其余被作业 {holder['number']}")
    why.get_by_role("link").filter(has_text="holder").click()
    expect(why).to_contain_text(f"作业 {holder['number']} 自 ")
    expect(why).to_contain_text("起在节点")
    expect(chinese.get_by_text("运行中").first).to_be_visible()
    expect(chinese.get_by_text("检查点").first).to_be_visible()
    expect(chinese.locator(".events")).to_contain_text("正在准备代码和环境")
    ahead = wire.Clause(message="batches are taken ahead", code="ahead")
    run.note(wire.NoteKind.INEXACT, ahead.message, ahead, step=20)
    run.note(wire.NoteKind.CHECKPOINT_FAILED, "no room", wire.Clause(message="no room", code="empty"), step=20)
    expect(chinese.locator(".job-warning").nth(0)).to_contain_text("检查点文件夹中没有写入任何内容")
    expect(chinese.locator(".job-warning").nth(1)).to_contain_text("批次在使用它的那一步之前就已取出")
    expect(chinese.locator(".events")).to_contain_text("批次在使用它的那一步之前就已取出")
    assert "年" in str(chinese.locator("time").first.get_attribute("title"))
    assert faults(chinese) == []
    run.end(exit_code=1, fingerprint="out-of-memory")
    expect(chinese.get_by_role("region", name="失败原因")).to_contain_text(SHORT_OF_MEMORY)
    expect(chinese.get_by_role("region", name="失败原因")).to_contain_text("退出码 1")
    expect(chinese.locator(".events")).to_contain_text(SHORT_OF_MEMORY)
    expect(chinese.locator(".stage-name").first).to_have_text("受理请求")
    on_gpu, off = {"pid": 71, "name": "python", "user": "eve", "started": "2026-11-25 18:00 UTC"}, "switched off"
    stray = wire.Finding(
        code="on-free-gpu", message="71", params={**on_gpu, "uuid": "GPU-2", "held": "", "holders": ()}
    )
    node.offender_findings = [stray]
    node.lose(3, wire.Finding(code="broken", message="79", params={"xid": 79, "at": "2026-11-25 18:00:03 UTC"}))
    node.register(unenforced=off, unenforced_finding=wire.Finding(code="cgroups-off", message=off))
    chinese.goto("/box")
    expect(chinese.locator(".offender")).to_contain_text("eve 的进程 71")
    expect(chinese.locator(".offender")).to_contain_text("队列未将该 GPU 分配给任何人")
    expect(chinese.locator(".node-limits")).to_contain_text("关闭了 cgroup")
    lost = chinese.locator(".device").nth(3)
    for words in ("隔离中", "Xid 79", "GPU 已从总线掉线"):
        expect(lost).to_contain_text(words)
    expect(lost.locator("code")).to_have_text(re.compile("^yard nodes --return .*:3$"))
    assert faults(chinese) == []


def test_form_of_a_job_is_in_chinese_beside_the_names_that_yaml_has(chinese: Page, live_service: Live) -> None:
    sign_in(chinese, live_service)
    chinese.get_by_role("link", name="新建作业").click()
    priority = chinese.get_by_label("优先级 (priority)")
    expect(priority).to_contain_text("normal · 普通")
    expect(chinese.get_by_text("在队列中的级别")).to_be_visible()
    chinese.locator("summary").filter(has_text="代码与环境").click()
    live = chinese.locator(".field").filter(has=chinese.get_by_label("节点上的文件夹 (live)"))
    expect(live.locator("code")).to_have_text("code")
    assert faults(chinese) == []
    chinese.get_by_label("GPU 数 (gpus)").fill("-1")
    expect(chinese.get_by_role("list", name="问题")).to_contain_text("-1 太小")


def test_chosen_language_stays(chinese: Page, live_service: Live) -> None:
    chinese.goto("/")
    expect(chinese.get_by_role("button", name="登录")).to_be_visible()
    chinese.get_by_role("button", name="English").press("Enter")
    expect(chinese.get_by_role("button", name="Sign in")).to_be_visible()
    sign_in(chinese, live_service)  # loads the page anew
    expect(chinese.get_by_role("heading", name="Jobs")).to_be_visible()
    assert chinese.evaluate(LANGUAGE) == "en"
    chinese.set_viewport_size({"width": 390, "height": 844})
    chinese.get_by_role("button", name="Menu").press("Enter")
    chinese.get_by_role("menuitem", name="简体中文").press("Enter")
    expect(chinese.get_by_role("button", name="菜单")).to_be_visible()
    assert chinese.evaluate(LANGUAGE) == "zh-CN"


def test_english_loads_no_other_language(stranger: Page) -> None:
    loaded: list[str] = []
    stranger.on("request", lambda request: loaded.append(request.url))
    stranger.goto("/")
    expect(stranger.get_by_role("button", name="简体中文")).to_be_visible()
    assert stranger.evaluate(LANGUAGE) == "en"
    assert any(".js" in url for url in loaded)
    assert not [url for url in loaded if "zh-CN" in url]
