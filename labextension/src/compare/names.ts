import type { IComparedCapture } from '../api/compare';

/** What each capture is called, so that no two are called the same: with its time where need be. */
export function namesOf(captures: readonly IComparedCapture[]): string[] {
  const count = new Map<string, number>();
  for (const { name } of captures) {
    count.set(name, (count.get(name) ?? 0) + 1);
  }
  return captures.map(({ name, created }) =>
    (count.get(name) ?? 0) > 1
      ? `${name} (${new Date(created).toLocaleString(undefined, {
          dateStyle: 'short',
          timeStyle: 'medium'
        })})`
      : name
  );
}
