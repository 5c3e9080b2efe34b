import { problemIn, type ProblemWords } from "../lib/problems";
import { recipes, specs, sweeps } from "./zh-CN.problems.specs";

/** By the end of a problem's type. */
const titles = {
  "invalid-request": "请求无效",
  "never-fits": "该作业在此系统上永远无法启动",
  "idempotency-mismatch": "该幂等键已用于另一请求内容",
  unauthorized: "没有有效的令牌或会话",
  forbidden: "不允许",
  "not-found": "未找到",
  "method-not-allowed": "该资源不支持此方法",
  conflict: "请求与已存内容矛盾",
  "not-acceptable-state": "作业当前的状态不允许此操作",
  "precondition-failed": "资源已被更改",
  "payload-too-large": "请求内容过大",
  "unsupported-media-type": "不接受此内容类型",
  "range-not-satisfiable": "所请求的范围超出文件",
  "unknown-host": "Host 标头不是本系统的地址",
  "protocol-mismatch": "不支持该节点代理的协议版本",
  "precondition-required": "需要 If-Match",
  "too-many-requests": "请求过多",
  internal: "服务出错",
  unavailable: "暂时不可用",
  "insufficient-storage": "服务的磁盘已满",
};

/** Wrong values, of any field. */
const values = {
  missing: "必填项缺失：请补上",
  "unknown-field": "未知字段：请去掉",
  "similar-field": "未知字段；是否想写 {near}？",
  "whole-number": "{given} 不是整数：请写整数，例如 2",
  number: "{given} 不是数字：请写数字，例如 0.5",
  "too-large": "{given} 太大",
  finite: "{given} 必须是有限的数",
  "not-finite": "必须是有限的数",
  "64-bits": "必须在 64 位整数范围内",
  flag: "{given} 既不是 true 也不是 false：请写其中之一",
  text: "{given} 不是文本：请加引号",
  binary: "必须是文本，不能是二进制数据",
  nul: "不得含有 NUL 或孤立的代理字符",
  pattern: "{given} 不符合所需的格式 {pattern}",
  name: "{given} 不能作名称：只用字母、数字、“.”、“_”和“-”，以字母或数字开头，最多 63 个字符",
  "control-character": "含有控制字符 U+{character}：请去掉",
  "too-short": "{given} 太短：至少 {min_length} 个字符",
  "too-long": "太长：最多 {max_length} 个字符",
  list: "{given} 不是列表：请写成 [{bare}]",
  mapping: "{given} 不是映射：请写成 `{field}: {NAME: value}`",
  fields: "{given} 不是映射：请写成 `{field}: {…}`，可用字段有 {fields}",
  "too-few": "内容太少：至少 {min_length} 项",
  "too-many": "内容太多：最多 {max_length} 项",
  choice: "{given} 不在可选值之中：请取 {expected}",
  "greater-than": "{given} 太小：必须大于 {gt}",
  "at-least": "{given} 太小：最小为 {ge}",
  "less-than": "{given} 太大：必须小于 {lt}",
  "at-most": "{given} 太大：最大为 {le}",
  time: "{given} 不是时间：请写成 2026-11-23T09:00Z",
  "time-zone": "{given} 没有时区：请写成 2026-11-23T09:00Z",
  duration: "{value} 不是时长：请写秒数，或 90s、10m、4h、2d、1h30m",
  "duration-range": "{value} 超出范围：时长为 0 秒至 36500d",
  "or-never": "{mistake}，或写 never",
  size: "{value} 不是大小：请写字节数，或 512MiB、16GiB、16GB",
  "size-range": "{value} 超出范围：大小为 0 字节至 1048576TiB",
  nested: "嵌套过深",
  "too-deep": "嵌套过深",
  "wrong-key": "其中一个名称有误：{fault}",
};

/** Bodies that cannot be read. */
const bodies = {
  "no-json": "不是有效的 JSON：{why}",
  "no-utf8": "第 {at} 个字节处不是 UTF-8",
  "media-type": "这里不接受“{kind}”：请发送 application/json 或 application/yaml。",
  "in-line": "第 {line} 行第 {column} 列：{what}",
  "body-list": "必须是字段的映射，例如 {name: …}，而不是列表",
  "body-text": "必须是字段的映射，例如 {name: …}，而不是文本",
  "body-nothing": "必须是字段的映射，例如 {name: …}，不能为空",
  "body-value": "必须是字段的映射，例如 {name: …}，而不是单个值",
  "yaml-aliases": "这里不接受别名（*name）",
  "yaml-tags": "这里不接受标签（{tag}）",
  "yaml-number": "数字没有这么长的：请把文本放进引号",
};

/** What there is not, or not any more. */
const absent = {
  "no-attempt": "没有尝试“{name}”。",
  "no-blob": "没有数据块“{name}”。",
  "no-checkpoint": "没有检查点“{name}”。",
  "no-committed-snapshot": "没有已提交的快照“{name}”。",
  "no-file": "没有文件“{name}”。",
  "no-file-of-hash": "快照的清单中没有此哈希值的文件：“{sha256}”。",
  "no-job": "没有作业“{name}”。",
  "no-node": "没有节点“{name}”。",
  "no-project": "没有项目“{name}”。",
  "no-reservation": "没有预留“{name}”。",
  "no-reservation-to-come": "没有尚未开始的预留“{name}”。",
  "no-resource": "没有资源“{name}”。",
  "no-snapshot": "没有快照“{name}”。",
  "no-stream": "没有数据流“{name}”。",
  "no-sweep": "没有搜索“{name}”。",
  "no-token": "没有令牌“{name}”。",
  "no-user": "没有用户“{name}”。",
};

/** Rights, tokens and sessions. */
const access = {
  "send-token": "请发送 'Authorization: Bearer <token>'；`yard token show` 会显示您的令牌。",
  "token-unknown": "此令牌未知、已过期或已撤销：请申请新的令牌。",
  "token-or-code": "请给出令牌或登录码，二者取一",
  "proof-unknown": "此令牌或登录码未知或已用过：请申请新的。",
  "proof-ended": "此令牌或登录码已失效：请申请新的。",
  "node-token-session": "节点的令牌不能打开会话：请用个人的令牌。",
  "service-account-session": "服务账户不能打开会话：请用个人的令牌。",
  "sign-in-elsewhere": "此次登录不是在这个浏览器中开始的、耗时过长或被拒绝。",
  "no-openid": "这里没有 OpenID Connect 登录：未设置 TORCHYARD_OIDC_ISSUER。",
  "link-service-account": "{name} 是服务账户，不在任何地方登录：请为它创建令牌。",
  "needs-origin": "用会话 cookie 更改内容需要 Origin 标头；或使用令牌。",
  "other-origin": "来源“{origin}”不是本系统的地址。",
  "all-tokens": "all：只有管理员可以查看他人的令牌。",
  "tokens-of-others": "user：只有管理员可以为他人创建令牌。",
  "node-token": "节点的令牌只有 node 这一项权限，并须指明节点",
  "node-token-maker": "scopes：只有管理员可以为节点创建令牌。",
  "node-token-owner": "{name} 是服务账户：节点的令牌须属于管理员",
  "scopes-beyond": "scopes：{scopes} 超出此用户或当前令牌的权限。",
  "expires-in": "必须大于零，例如 30d",
  "token-is-session": "这是网页的会话：请退出后重新登录。",
  "token-rights": "此令牌的权限多于当前所用的令牌：请用权限不少于它的令牌来终止它。",
  "missing-scope": "这需要权限为 {scope} 的令牌；当前令牌的权限：{has}。",
  "members-only": "project：只有成员可以向 {project} 提交，而 {user} 不是成员：请换一个项目，或请管理员执行 `yard projects members add {project} {user}`。",
  viewer: "{user} 的角色是 viewer，只能读取、不能更改：管理员可用 `yard users set {user} --role member` 更改角色。",
  "project-viewer": "{user} 在项目 {project} 中的角色是 viewer，只能读取、不能更改：管理员可用 `yard projects members add {project} {user} --role member` 更改角色。",
  "viewer-service-account": "{name} 是项目 {own} 的服务账户，在项目 {project} 中的角色是 viewer：不能在那里更改任何内容。",
  "other-users-job": "这是其他用户的作业：只有其所有者或管理员（全局或该项目的）可以更改。",
  "needs-administrator": "这需要管理员角色（全局或项目 {project} 的）；您在该项目中的角色是 {role}。",
  urgent: "urgent 需要 admin 权限：请取 high",
};

/** People and projects. */
const people = {
  "user-exists": "name：已有用户 {name}：请换一个名称。",
  "user-deactivated": "{name} 已停用：`yard users set {name} --active` 可重新启用",
  "service-account-role": "服务账户在其项目中只能是 member 或 viewer，不能是管理员",
  "role-and-admin": "{role} 与 admin 矛盾：请只给出一个",
  "unix-root": "不以 root 身份代人运行作业：请为其创建账户，再填写该账户",
  "project-exists": "name：已有项目 {name}。",
  "project-absent": "没有项目 {name}",
  "project-unknown": "没有项目 {project}：请从 {known} 中选择，或请管理员执行 `yard projects create {project}`",
  "private-jobs": "{project} 的作业是私有的：除所有者外无人可见，因此没有指向它们的链接。管理员可用 `yard projects set {project} --visibility project` 更改。",
};

/** Changes of jobs, sweeps and reservations. */
const changes = {
  "job-changed": "您读取之后，作业已有变化：请重新读取，再作更改。",
  "send-if-match": "请发送 If-Match，内容为您所读作业的 ETag。",
  "changes-of": "{field}：作业 {number} 的状态是“{state}”；{field} 只能更改{of_what}。",
  "changes-only-of": "只能更改{of_what}",
  "not-over": "尚未结束的作业",
  "still-waiting": "等待中的作业：其节点已得到此作业",
  "stacks-of-running": "作业 {number} 的状态是“{state}”：只有运行中的作业才有调用栈",
  "preempt-running": "作业 {number} 的状态是“{state}”：只能抢占运行中的作业",
  "preempted-already": "作业 {number} 已在被抢占",
  "checkpoint-of-running": "作业 {number} 的状态是“{state}”：只有运行中的作业才能写检查点",
  "hold-queued": "作业 {number} 的状态是“{state}”：只能挂起或释放等待中的作业",
  "cancel-over": "作业 {number} 已经结束：在取消之前状态已是“{state}”",
  "version-read": "作业 {number} 的版本是 {version}，不是 {read}：请重新读取",
  "changed-meanwhile": "作业 {number} 在此期间已被更改",
  "not-null": "不能为 null：要保持原值，请省略",
  "is-sweep": "{number} 是超参数搜索，不是作业：请看 `yard sweep show {number}`（GET /groups/{number}）。",
  "no-trial-waits": "搜索 {number} 没有等待中的试验：只能挂起或释放等待中的试验。",
  "rerun-sweep": "重新运行只产生一个作业：请用 POST /jobs 提交超参数搜索",
  "owners-values": "{names} 的值属于其所有者：请给出您自己的值，或写 null 以省略变量",
  "checkpoint-absent": "此作业没有检查点“{asked}”：见 GET /jobs/{job}/checkpoints",
  "best-of-none": "best 需要规格中的 checkpoint.keep_best：请给出检查点的 id",
  "hidden-value": "{hidden} 代表您无权查看的值：请给出您自己的值",
  "code-discarded": "此作业的代码已被丢弃：请从其文件夹重新提交",
  "code-absent": "您没有快照 {code}：请用 POST /snapshots 上传",
  "code-incomplete": "快照 {code} 不完整：请上传缺少的部分，再提交它",
  "in-the-past": "已经过去：要立即开始，请省略",
  "ends-before": "必须晚于 starts_at，且晚于现在",
  "reserved-for": "请给出用户或项目，或写 maintenance: true",
  "gpus-or-nodes": "请给出 gpus（数目，不限节点）或 nodes（整个节点），二者取一",
  "maintenance-nodes": "请给出要维护的节点",
  "reserved-node": "没有节点 {name}：请取以下之一：{known}",
  "all-unknown": "没有设备可用的节点在线，因此不知道全部是多少：请给出数目，或启动节点代理",
  "no-mpi": "没有节点的 torch 是带 MPI 构建的：请取 auto",
};

/** Signing in with a provider, or by UNIX account. */
const signIn = {
  "provider-token": "身份提供方的令牌无效（{error}）",
  "provider-audience": "身份提供方的令牌是给另一程序的",
  "provider-claim": "身份提供方没有给出可作用户名的 {claim}：请管理员设置 TORCHYARD_OIDC_CLAIM。",
  "provider-groups": "您在身份提供方的组都不能使用本系统。它给出的组（{claim}）：{known}。",
  "provider-silent": "{url} 没有响应：请重试，或使用令牌。",
  "provider-broken": "{url} 出了故障：请重试，或使用令牌。",
  "provider-refuses": "身份提供方拒绝此次登录",
  "provider-busy": "许多登录正在等待 OpenID Connect 身份提供方：请一秒后重新加载本页。",
  "sign-in-unknown": "这里没有用户 {name}：请管理员用 `yard users add {name}` 添加。",
  "sign-in-inactive": "{name} 已停用或是服务账户：不能登录。",
  "sign-in-deactivated": "{name} 已停用：请管理员恢复。",
  "sign-in-refused": "登录被拒绝：{reason}。请重新开始。",
  "unix-sign-in-off": "这里不能用 UNIX 账户登录：请管理员为您创建令牌。",
  "root-sign-in": "只有 TORCHYARD_UNIX_ADMINISTRATORS 中列出 root 时，root 才能在此登录。",
};

/** Filters and orders of lists. */
const lists = {
  "list-cursor": "不是此列表给出过的：请省略并从头开始",
  "list-order": "没有 {text} 这种顺序：请取以下之一：{known}；前面加减号表示从大到小",
  "metric-filter": "{text} 不是指标与有限数的比较：请写成 val/accuracy>0.9，或用 max:val/accuracy>0.9 取最大值",
  "sweep-metric": "此搜索没有指定指标：请说明按哪个指标比较试验",
};

/** The service itself. */
const service = {
  "database-away": "数据库目前没有响应：请稍后再试。",
  "database-busy": "数据库正忙：其他操作已占用其锁数秒，请稍后再试。",
  "disk-full": "服务的磁盘已满：请在数据库和产物所在之处腾出空间。",
  "nul-or-numbers": "文本不得含有 NUL，数须在 64 位整数范围内。",
  "see-log": "服务出错；原因见其日志。",
};

export const words: ProblemWords = {
  titles,
  messages: {
    ...values, ...bodies, ...specs, ...sweeps, ...recipes, ...absent, ...access, ...people, ...changes,
    ...signIn, ...lists, ...service,
  },
};

export const inWords = (body: unknown) => problemIn(words, body);
