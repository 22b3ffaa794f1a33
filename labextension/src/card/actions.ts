import { createContext, useContext } from 'react';

import type { TranslationBundle } from '@jupyterlab/translation';
import { nullTranslator } from '@jupyterlab/translation';

/** A tool of XProf's at a run; an empty tool leaves the choice to XProf's page. */
export interface IXprofTarget {
  run: string;
  tool: string;
}

/** What a card can have done. A failure is told to the user by whoever does it; nothing rejects. */
export interface ICardActions {
  openXprof(target: IXprofTarget): void;
  /** Where XProf's page is on this server, for a link. */
  xprofUrl(target: IXprofTarget): string;
  /** Download its only file, or all of them as a zip. */
  download(id: string): void;
  /** Open the comparison with others; null where nothing can show one. */
  compare: ((id: string) => void) | null;
  /** Open the capture in a tab of its own; null where nothing can show one. */
  openCapture: ((id: string) => void) | null;
  /** Show the page of the documentation about a pattern (`device-idle`); null where it can't be shown. */
  openPattern: ((pattern: string) => void) | null;
  /** Whether it has the name now. */
  rename(id: string, name: string): Promise<boolean>;
  /** Whether it is pinned, or not pinned, now. */
  setPinned(id: string, pinned: boolean): Promise<boolean>;
}

/** What the server says of a capture: what a user may have changed since, or why nothing can be done with it. */
export interface IStored {
  name: string;
  pinned: boolean;
  /** A sentence that stands in the buttons' place; empty where they work. */
  lost: string;
}

const Translation = createContext<TranslationBundle>(
  nullTranslator.load('jupyterlab_jaxprof')
);

/** Gives the translations to all parts of a card. */
export const TranslationProvider = Translation.Provider;

export function useTrans(): TranslationBundle {
  return useContext(Translation);
}
