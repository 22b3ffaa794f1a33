import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { CapturesModel } from '../sidebar/model';

/** The captures that a command is for: those that its arguments name (`id`, `ids`), else the selected ones. */
export function capturesOf(
  args: ReadonlyPartialJSONObject,
  model: CapturesModel
): readonly string[] {
  const named = [args.ids ?? args.id ?? []].flat();
  const ids = named.filter(id => typeof id === 'string');
  return args.ids !== undefined || args.id !== undefined
    ? ids
    : model.selectedIds;
}
