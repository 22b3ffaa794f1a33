/** Read, from a failed cell, that its kernel's environment lacks the package. */

/** Gives the package to the environment of the kernel that runs it. */
export const INSTALL_COMMAND = '%pip install jupyterlab-jaxprof';

/** What IPython says of a magic that it doesn't have. */
const NOT_FOUND =
  /(?:Cell magic `(%%jax(?:trace|prof|time|nsys|mem\w*|sweep))`|Line magic function `(%jax(?:trace|prof|time|nsys|mem\w*|sweep))`) not found/;

/** The magic of ours that IPython doesn't have ('%%jaxtrace'); null if `message` says nothing of that kind. */
export function missingMagic(message: string): string | null {
  const match = NOT_FOUND.exec(message);
  return match?.[1] ?? match?.[2] ?? null;
}

/** Whether running this code may have made a capture. */
export function usesMagics(source: string): boolean {
  return /^\s*%{1,2}(?:jax\w+|nsys)\b/m.test(source);
}

/** Put a line above the code of a cell, once. */
export function withLine(source: string, line: string): string {
  return source.trimStart().startsWith(line) ? source : `${line}\n${source}`;
}
