import js from "@eslint/js";
import stylistic from "@stylistic/eslint-plugin";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig, globalIgnores } from "eslint/config";
import ts from "typescript-eslint";

export default defineConfig(
  globalIgnores(["dist", "node_modules", "src/api/schema.d.ts", "public"]),
  js.configs.recommended,
  hooks.configs.flat["recommended-latest"],
  {
    files: ["**/*.{ts,tsx}"],
    extends: [ts.configs.strictTypeChecked, ts.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: "./tsconfig.json" } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    },
  },
  stylistic.configs.customize({ quotes: "double", semi: true, braceStyle: "1tbs", arrowParens: true, quoteProps: "as-needed" }),
  {
    rules: {
      "@stylistic/max-len": ["error", { code: 120, ignoreStrings: true, ignoreTemplateLiterals: true, ignorePattern: " d=\"" }],
      "@stylistic/jsx-one-expression-per-line": "off",
      "@stylistic/operator-linebreak": ["error", "after", { overrides: { "?": "before", ":": "before", "|": "before" } }],
      "max-lines": ["error", 300],
      complexity: ["error", 12],
    },
  },
);
