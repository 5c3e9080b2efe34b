import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import { type PluginItem, transformAsync, types } from "@babel/core";
import { compileMessage } from "@lingui/message-utils/compileMessage";
import type { Plugin, Rolldown } from "vite";

const MACRO = /from "@lingui\/(?:core|react)\/macro"/;

/** Messages are compiled where they stand, so that English needs neither a catalog nor a compiler in the browser. */
const compiled: PluginItem = {
  visitor: {
    Program: {
      exit(program) {
        program.traverse({
          ObjectExpression({ node }) {
            if (!node.leadingComments?.some(({ value }) => value.includes("i18n"))) return;
            for (const part of node.properties) {
              if (!types.isObjectProperty(part) || !types.isIdentifier(part.key, { name: "message" })) continue;
              if (!types.isStringLiteral(part.value)) continue;
              part.value = types.valueToNode(compileMessage(part.value.value));
            }
          },
        });
      },
    },
  },
};

/** Makes calls of Lingui of what marks texts (`t`, `Trans`, `plural`): for the build, the dev server and the tests. */
export function messages(): Plugin {
  return {
    name: "messages",
    enforce: "pre",
    transform: {
      filter: { id: /\/src\/.*\.tsx?$/, code: MACRO },
      async handler(code, id) {
        const result = await transformAsync(code, {
          filename: id,
          babelrc: false,
          configFile: false,
          sourceMaps: true,
          parserOpts: { plugins: id.endsWith("x") ? ["typescript", "jsx"] : ["typescript"] },
          plugins: [["@lingui/babel-plugin-lingui-macro", { stripMessageField: false }], compiled],
        });
        return result?.code == null ? null : { code: result.code, map: result.map ?? null };
      },
    },
  };
}

/** Files that are smaller are one packet anyway. */
const PACKED_FROM_BYTES = 1_000;

const gzipped = (content: string | Uint8Array) => gzipSync(content, { level: constants.Z_BEST_COMPRESSION });

/** Writes each text that was built in brotli and gzip beside it: the service sends what the browser unpacks. */
export function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    writeBundle({ dir = "" }) {
      for (const name of readdirSync(dir, { recursive: true, encoding: "utf8" })) {
        if (!/\.(?:js|css|html|svg)$/.test(name)) continue;
        const content = readFileSync(join(dir, name));
        if (content.length < PACKED_FROM_BYTES) continue;
        writeFileSync(join(dir, `${name}.br`), brotliCompressSync(content));
        writeFileSync(join(dir, `${name}.gz`), gzipped(content));
      }
    },
  };
}

/** What is asked of a file that was built. */
type Built = Pick<Rolldown.OutputAsset, "type" | "source"> | (
  Pick<Rolldown.OutputChunk, "type" | "code" | "imports"> & { viteMetadata?: { importedCss: ReadonlySet<string> } | undefined }
);

/** The bytes, at gzip's best, of each script and style that an entry loads before it shows anything, the most first. */
export function firstView(bundle: Readonly<Record<string, Built>>, entry: string): [name: string, bytes: number][] {
  const found = new Map<string, number>();
  const visit = (name: string) => {
    const file = bundle[name];
    if (file === undefined || found.has(name)) return;
    found.set(name, gzipped(file.type === "chunk" ? file.code : file.source).length);
    if (file.type === "chunk") [...file.imports, ...file.viteMetadata?.importedCss ?? []].forEach(visit);
  };
  visit(entry);
  return [...found].sort(([, one], [, other]) => other - one);
}

/** Fails the build where the first view of `page` weighs more than `limit` bytes, and says what is in it. */
export function lightFirstView(page: string, limit: number): Plugin {
  return {
    name: "light-first-view",
    apply: "build",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        const chunks = Object.values(bundle).filter((file) => file.type === "chunk");
        const entry = chunks.find(({ facadeModuleId }) => facadeModuleId?.endsWith(`/${page}`));
        if (entry === undefined) this.error(`no entry is made of ${page}`);
        const files = firstView(bundle, entry.fileName);
        const bytes = files.reduce((sum, [, more]) => sum + more, 0);
        if (bytes <= limit) return;
        const ours = files.map(([name, size]) => `${size} ${name}${largest(bundle[name])}`);
        this.error(
          `the first view takes ${bytes} bytes at gzip -9, and may take ${limit}: load later what it does not show.\n${ours.join("\n")}`,
        );
      },
    },
  };
}

/** The largest modules of a script, a line each, with their bytes before they are made small. */
function largest(file: Rolldown.OutputChunk | Rolldown.OutputAsset | undefined): string {
  if (file?.type !== "chunk") return "";
  const modules = Object.entries(file.modules).sort(([, one], [, other]) => other.renderedLength - one.renderedLength);
  return modules.slice(0, 20).map(([id, { renderedLength }]) => `\n    ${renderedLength} ${id.replace(/.*\/dashboard\//, "")}`).join("");
}
