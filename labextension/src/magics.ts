/** Magics in the text of cells, and in what a kernel says of them. */

/** Gives the package to the environment of the kernel that runs it. */
export const INSTALL_COMMAND = '%pip install jupyterlab-jaxprof';

/** What IPython says of a magic that it doesn't have. */
const NOT_FOUND =
  /(?:Cell magic `(%%jax(?:trace|prof|time|nsys|mem\w*|sweep))`|Line magic function `(%jax(?:trace|prof|time|nsys|mem\w*|sweep))`) not found/;

/** Blank lines and comments, then a cell magic's line: what stands before it, its name, the whole line. */
const CELL_MAGIC = /^((?:[ \t]*(?:#.*)?\n)*)[ \t]*(%%([^\s?]+)(?!\S).*)/;

const OURS = new Map([
  ['jaxtime', 'jaxtime'],
  ['jaxtrace', 'jaxtrace'],
  ['jaxsweep', 'jaxsweep'],
  ['jaxnsys', 'nsys'],
  ['nsys', 'nsys']
]);

/** The magic of ours that IPython doesn't have ('%%jaxtrace'); null if `message` says nothing of that kind. */
export function missingMagic(message: string): string | null {
  const match = NOT_FOUND.exec(message);
  return match?.[1] ?? match?.[2] ?? null;
}

/** Whether running this code may have made a capture. */
export function usesMagics(source: string): boolean {
  return /^\s*%{1,2}(?:jax\w+|nsys)\b/m.test(source);
}

/** The cell magic that a cell begins with ('%%bash'), if it is none of ours; else null. */
export function foreignMagic(source: string): string | null {
  const name = CELL_MAGIC.exec(source)?.[3];
  return name === undefined || OURS.has(name) ? null : `%%${name}`;
}

/** Whether a cell begins with the magic of this line already, whatever its options. */
export function beginsWith(source: string, line: string): boolean {
  const [own, other] = [source, line].map(text =>
    OURS.get(CELL_MAGIC.exec(text)?.[3] ?? '')
  );
  return own !== undefined && own === other;
}

/**
 * Put a magic's line above the code of a cell, in place of another magic of ours there. A cell that begins with
 * the same magic stays as it is, with its options.
 */
export function withLine(source: string, line: string): string {
  const found = CELL_MAGIC.exec(source);
  if (!found || !OURS.has(found[3] ?? '')) {
    return `${line}\n${source}`;
  }
  return beginsWith(source, line)
    ? source
    : (found[1] ?? '') + line + source.slice(found[0].length);
}
