import type { ISettingRegistry } from '@jupyterlab/settingregistry';

/** Tell the value of a plugin's setting now and whenever it changes, and give back its settings. */
export async function followSetting(
  registry: ISettingRegistry | null,
  plugin: string,
  key: string,
  tell: (value: unknown) => void
): Promise<ISettingRegistry.ISettings | undefined> {
  let settings: ISettingRegistry.ISettings | undefined;
  try {
    settings = await registry?.load(plugin);
  } catch (error) {
    // A setting that can't be read has its default; JupyterLab tells of the schema itself.
    console.warn(`The settings of ${plugin} could not be read.`, error);
    return undefined;
  }
  const read = (): void => {
    tell(settings?.get(key).composite);
  };
  settings?.changed.connect(read);
  if (settings) {
    read();
  }
  return settings;
}
