import { type PluginItem, transformAsync, types } from "@babel/core";
import { compileMessage } from "@lingui/message-utils/compileMessage";
import type { Plugin } from "vite";

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
