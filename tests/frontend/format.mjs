// Reads [[function, argument...]...] and writes what labextension/src/format.ts makes of each.
import { readFileSync } from 'node:fs';
import ts from 'typescript';

const source = new URL('../../labextension/src/format.ts', import.meta.url);
const { outputText } = ts.transpileModule(readFileSync(source, 'utf8'), {
  compilerOptions: { target: 'ES2022', module: 'ES2022' }
});
const format = await import(
  `data:text/javascript,${encodeURIComponent(outputText)}`
);
const calls = JSON.parse(readFileSync(0, 'utf8'));
console.log(
  JSON.stringify(calls.map(([name, ...given]) => format[name](...given)))
);
