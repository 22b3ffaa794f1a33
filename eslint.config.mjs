import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import reactHooks from 'eslint-plugin-react-hooks';
import globals from 'globals';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  {
    ignores: [
      '**/node_modules',
      'lib',
      'jupyterlab_jaxprof/labextension',
      'build',
      'dist',
      '.*/**'
    ]
  },
  js.configs.recommended,
  {
    files: ['jupyterlab_jaxprof/server/static/*.js'],
    languageOptions: { globals: globals.browser, sourceType: 'module' }
  },
  {
    files: ['labextension/*.config.js'],
    languageOptions: { globals: globals.node, sourceType: 'commonjs' }
  },
  {
    files: ['tests/**/*.mjs'],
    languageOptions: { globals: globals.node }
  },
  {
    files: ['labextension/src/**/*.{ts,tsx}'],
    extends: [
      ...tseslint.configs.strictTypeChecked,
      ...tseslint.configs.stylisticTypeChecked,
      reactHooks.configs['recommended-latest']
    ],
    languageOptions: {
      parserOptions: {
        projectService: true,
        tsconfigRootDir: import.meta.dirname
      }
    },
    rules: {
      // Lumino's convention: an interface and a namespace of the same name.
      '@typescript-eslint/no-namespace': 'off',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true }
      ],
      // Lumino's signals take a method and its `this`.
      '@typescript-eslint/unbound-method': 'off',
      eqeqeq: 'error'
    }
  },
  prettier
);
