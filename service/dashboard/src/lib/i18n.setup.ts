import { vi } from "vitest";

// Tests read the texts that stand in the code, and American dates.
vi.stubGlobal("navigator", { languages: ["en-US"] });
vi.stubGlobal("localStorage", { getItem: () => null });
await import("./i18n");
vi.unstubAllGlobals();
