import { expect, it, vi } from "vitest";

import { type Browser, entryOf, importedUrl, NotLoaded, retried } from "./load";

const PART = { Part: "part" };
const URL = "http://yard/assets/Part-a1.js";
const missing = (where = URL) => new TypeError(`Failed to fetch dynamically imported module: ${where}`);

/** A browser that notes what is asked of it. */
function browser(parts: Partial<Browser> = {}) {
  return {
    wait: vi.fn(() => Promise.resolve()),
    reloadStyles: vi.fn(() => Promise.resolve()),
    importUrl: vi.fn(() => Promise.reject(missing())),
    isUpdated: vi.fn(() => Promise.resolve(false)),
    ...parts,
  };
}

it("loads a part that is there once, and waits for nothing", async () => {
  const load = vi.fn(() => Promise.resolve(PART));
  const asked = browser();
  expect(await retried(load, asked)).toBe(PART);
  expect(load).toHaveBeenCalledOnce();
  expect(asked.wait).not.toHaveBeenCalled();
});

it("loads a part again after a pause, with its styles", async () => {
  const load = vi.fn(() => Promise.resolve(PART)).mockRejectedValueOnce(missing());
  const asked = browser();
  expect(await retried(load, asked)).toBe(PART);
  expect(load).toHaveBeenCalledTimes(2);
  expect(asked.wait).toHaveBeenCalledOnce();
  expect(asked.reloadStyles).toHaveBeenCalledOnce();
  expect(asked.importUrl).not.toHaveBeenCalled();
});

it("asks by another address where the browser remembers the failure", async () => {
  const importUrl = vi.fn(() => Promise.resolve(PART));
  expect(await retried(() => Promise.reject(missing()), browser({ importUrl }))).toBe(PART);
  expect(importUrl).toHaveBeenCalledExactlyOnceWith(`${URL}?again`);
});

it.each([true, false])("says that a part is not loaded, and whether there is another version: %s", async (updated) => {
  const asked = browser({ isUpdated: () => Promise.resolve(updated) });
  const error = await retried(() => Promise.reject(missing()), asked).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(NotLoaded);
  expect((error as NotLoaded).updated).toBe(updated);
});

it("has no part whose styles cannot be loaded", async () => {
  const load = vi.fn(() => Promise.resolve(PART)).mockRejectedValueOnce(missing());
  const asked = browser({ reloadStyles: () => Promise.reject(new Error("no styles")) });
  await expect(retried(load, asked)).rejects.toBeInstanceOf(NotLoaded);
});

it("has no other address where the browser names none", async () => {
  const asked = browser();
  const load = () => Promise.reject(new TypeError("Importing a module script failed."));
  await expect(retried(load, asked)).rejects.toBeInstanceOf(NotLoaded);
  expect(asked.importUrl).not.toHaveBeenCalled();
});

it("finds the address in the words of each browser", () => {
  expect(importedUrl(missing())).toBe(URL);
  expect(importedUrl(new TypeError(`error loading dynamically imported module: ${URL}`))).toBe(URL);
  expect(importedUrl(new Error("Unable to preload CSS for /assets/Part-a1.css"))).toBeNull();
  expect(importedUrl("no error")).toBeNull();
});

it("finds the script that a page begins with", () => {
  const head = "<script src=\"/theme.js\"></script><script type=\"module\" crossorigin src=\"/assets/index-a1.js\"></script>";
  expect(entryOf(`<html>${head}</html>`)).toBe("/assets/index-a1.js");
  expect(entryOf("<html></html>")).toBeNull();
});
