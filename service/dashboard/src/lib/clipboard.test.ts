import { afterEach, expect, test, vi } from "vitest";

import { copyText } from "./clipboard";

afterEach(() => {
  vi.unstubAllGlobals();
});

test("a secure page has a clipboard, which may refuse", async () => {
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal("isSecureContext", true);
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  expect(await copyText("yard top", {} as HTMLElement)).toBe(true);
  expect(writeText).toHaveBeenCalledWith("yard top");
  writeText.mockReturnValue(Promise.reject(new Error("denied")));
  expect(await copyText("yard top", {} as HTMLElement)).toBe(false);
});

test("over plain http a field beside the button is selected, and gone afterwards", async () => {
  const field = { value: "", style: {}, selected: false, select: () => (field.selected = true), remove: vi.fn() };
  const button = { after: vi.fn(), focus: vi.fn() };
  vi.stubGlobal("isSecureContext", false);
  vi.stubGlobal("navigator", {});
  vi.stubGlobal("document", { createElement: () => field, execCommand: () => field.selected && field.value === "yard top" });
  expect(await copyText("yard top", button as unknown as HTMLElement)).toBe(true);
  expect(button.after).toHaveBeenCalledWith(field);
  expect(field.remove).toHaveBeenCalledOnce();
  expect(button.focus).toHaveBeenCalledOnce();
});
