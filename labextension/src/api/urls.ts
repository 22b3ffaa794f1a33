import type { ServerConnection } from '@jupyterlab/services';

import type { ViewerName } from './types';

/** What a viewer shows; empty strings leave the choice to the viewer's page. */
export interface IViewerTarget {
  run: string;
  tool: string;
  host: string;
}

type Settings = Pick<ServerConnection.ISettings, 'baseUrl'>;

/**
 * An address below `<base_url>jaxprof/`, each segment encoded once.
 *
 * `baseUrl` is taken as it stands: it ends with a slash and is encoded already ('/user/me%40host.org/').
 */
function below(settings: Settings, segments: readonly string[]): string {
  return (
    settings.baseUrl +
    ['jaxprof', ...segments].map(encodeURIComponent).join('/')
  );
}

export function apiUrl(settings: Settings, ...segments: string[]): string {
  return below(settings, ['api', ...segments]);
}

/** The address of one file of a capture; `path` is `/`-separated. */
export function fileUrl(settings: Settings, id: string, path: string): string {
  return apiUrl(settings, 'captures', id, 'files', ...path.split('/'));
}

/** The address of a capture as one zip. */
export function archiveUrl(settings: Settings, id: string): string {
  return apiUrl(settings, 'captures', id, 'archive');
}

/** The address of the page that shows a viewer. */
export function viewerUrl(
  settings: Settings,
  viewer: ViewerName,
  target: IViewerTarget
): string {
  const query = new URLSearchParams();
  for (const key of ['run', 'tool', 'host'] as const) {
    if (target[key]) {
      query.set(key, target[key]);
    }
  }
  const text = query.toString();
  return below(settings, [viewer]) + (text && `?${text}`);
}

/** Read what a link to a viewer's page asks for, whatever base_url it was made for; null for any other link. */
export function targetOfLink(href: string): IViewerTarget | null {
  const query = /\/jaxprof\/xprof\?([^#]*)/.exec(href)?.[1];
  if (query === undefined) {
    return null;
  }
  const values = new URLSearchParams(query);
  return {
    run: values.get('run') ?? '',
    tool: values.get('tool') ?? '',
    host: values.get('host') ?? ''
  };
}
