import { Notification } from '@jupyterlab/apputils';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Server } from '../api/server';
import { wordsOf } from '../sidebar/problem';

const MAGICS = ['jaxtime', 'jaxtrace', 'nsys', 'jaxsweep', 'jaxmem'] as const;

type Defaults = Record<string, string>;

/** Write the default options of JupyterLab's settings to the store, where the magics read them. */
export async function followDefaults(
  settings: ISettingRegistry.ISettings,
  server: Server,
  trans: TranslationBundle
): Promise<void> {
  let known = readDefaults(settings);
  settings.changed.connect(() => {
    const now = readDefaults(settings);
    if (!areEqual(now, known)) {
      known = now;
      void save(now);
    }
  });
  const save = async (defaults: Defaults): Promise<void> => {
    try {
      await server.client.putSettings({ defaults });
    } catch (error) {
      Notification.error(wordsOf(error, trans), { autoClose: 8000 });
    }
  };
  // Whoever never set any here may have written the file by hand.
  if (MAGICS.some(magic => settings.user[magic] !== undefined)) {
    try {
      const { settings: saved } = await server.client.storeSettings({
        background: true
      });
      if (!areEqual(saved.defaults ?? {}, known)) {
        await save(known);
      }
    } catch {
      // The sidebar says what is wrong with the server.
    }
  }
}

function readDefaults(settings: ISettingRegistry.ISettings): Defaults {
  const defaults: Defaults = {};
  for (const magic of MAGICS) {
    const options = settings.get(magic).composite;
    if (typeof options === 'string' && options.trim()) {
      defaults[magic] = options.trim();
    }
  }
  return defaults;
}

function areEqual(one: Defaults, other: Defaults): boolean {
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...keys].every(key => one[key] === other[key]);
}
