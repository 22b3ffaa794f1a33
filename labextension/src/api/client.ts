import { ServerConnection } from '@jupyterlab/services';

import type { IHistory, ISideBySide } from './compare';
import { problemOfError, problemOfResponse, RequestProblem } from './problem';
import type { IStoredRecord } from './record';
import type {
  CaptureChanges,
  ICapturePage,
  ICaptureQuery,
  ICaptureRow,
  IEnvironmentProblem,
  IImportState,
  IRunning,
  IServerStatus,
  IStoreSettings,
  IUploadedFile,
  IViewerState,
  KernelUsage,
  ViewerAction,
  ViewerName
} from './types';
import { apiUrl } from './urls';

/** As many identifiers as an address has room for. */
export const MAX_IDS = 100;

export interface IRequestOptions {
  /** Nobody asked for it just now: it must not keep an idle server alive. */
  background?: boolean;
}

/** The REST routes of the server extension. Every method rejects with a RequestProblem. */
export class Client {
  constructor(readonly settings: ServerConnection.ISettings) {}

  async status(options?: IRequestOptions): Promise<IServerStatus> {
    return this.json<IServerStatus>('GET', ['status'], { options });
  }

  async captures(
    query: ICaptureQuery,
    offset: number,
    limit: number,
    options?: IRequestOptions
  ): Promise<ICapturePage> {
    const search: Record<string, string> = {
      offset: String(offset),
      limit: String(limit),
      kind: query.kind,
      notebook: query.notebook,
      q: query.text
    };
    return this.json<ICapturePage>('GET', ['captures'], { search, options });
  }

  /** Those of these captures that there are; the server knows at most MAX_IDS at a time. */
  async capturesOf(
    ids: readonly string[],
    options?: IRequestOptions
  ): Promise<ICaptureRow[]> {
    const search = { ids: ids.join(','), limit: String(ids.length) };
    const page = await this.json<ICapturePage>('GET', ['captures'], {
      search,
      options
    });
    return page.captures;
  }

  /** What is amiss in the server's environment, the worst first. */
  async environmentProblems(): Promise<IEnvironmentProblem[]> {
    const { problems } = await this.json<{ problems: IEnvironmentProblem[] }>(
      'GET',
      ['environment'],
      {}
    );
    const rank = (one: IEnvironmentProblem): number =>
      one.needed ? 0 : one.note ? 2 : 1;
    return problems.sort((a, b) => rank(a) - rank(b));
  }

  /** The page of the documentation about a finding, as Markdown. */
  async pattern(name: string): Promise<string> {
    const page = await this.json<{ markdown: string }>(
      'GET',
      ['patterns', name],
      {}
    );
    return page.markdown;
  }

  /** A capture with all that its record tells. */
  async capture(id: string, options?: IRequestOptions): Promise<IStoredRecord> {
    return this.json<IStoredRecord>('GET', ['captures', id], { options });
  }

  /** The captures of the same cell. */
  async history(id: string, options?: IRequestOptions): Promise<IHistory> {
    return this.json<IHistory>('GET', ['captures', id, 'history'], { options });
  }

  /** Captures side by side, each against the first. */
  async compare(
    ids: readonly string[],
    options?: IRequestOptions
  ): Promise<ISideBySide> {
    return this.json<ISideBySide>('GET', ['compare'], {
      search: { id: ids },
      options
    });
  }

  async update(id: string, changes: CaptureChanges): Promise<void> {
    await this.json('PATCH', ['captures', id], { body: changes });
  }

  async delete(id: string): Promise<void> {
    await this.request('DELETE', ['captures', id], {});
  }

  async viewer(name: ViewerName, action: ViewerAction): Promise<IViewerState> {
    return this.json<IViewerState>('POST', ['viewers', name], {
      body: { action }
    });
  }

  async running(options?: IRequestOptions): Promise<IRunning> {
    return this.json<IRunning>('GET', ['running'], { options });
  }

  async usage(
    kernelId: string,
    options?: IRequestOptions
  ): Promise<KernelUsage> {
    return this.json<KernelUsage>('GET', ['kernels', kernelId, 'usage'], {
      options
    });
  }

  /** Begin an import: of a file that the server's contents API knows, or of files that are uploaded next. */
  async beginImport(
    source: { path: string } | { files: IUploadedFile[] }
  ): Promise<IImportState> {
    return this.json<IImportState>('POST', ['imports'], { body: source });
  }

  async sendPiece(
    id: string,
    index: number,
    offset: number,
    piece: Blob
  ): Promise<void> {
    await this.request('PUT', ['imports', id, String(index)], {
      search: { offset: String(offset) },
      body: piece
    });
  }

  async finishUpload(id: string): Promise<IImportState> {
    return this.json<IImportState>('POST', ['imports', id], { body: {} });
  }

  async importState(id: string): Promise<IImportState> {
    return this.json<IImportState>('GET', ['imports', id], {});
  }

  async dropImport(id: string): Promise<void> {
    await this.request('DELETE', ['imports', id], {});
  }

  async storeSettings(options?: IRequestOptions): Promise<IStoreSettings> {
    return this.json<IStoreSettings>('GET', ['settings'], { options });
  }

  /** Change settings that the store keeps. */
  async putSettings(
    changes: IStoreSettings['settings']
  ): Promise<IStoreSettings> {
    return this.json<IStoreSettings>('PUT', ['settings'], { body: changes });
  }

  private async json<T>(
    method: string,
    segments: string[],
    details: IRequestDetails
  ): Promise<T> {
    const response = await this.request(method, segments, details);
    if (!response.headers.get('Content-Type')?.includes('json')) {
      throw new RequestProblem('foreign', '', response.status);
    }
    try {
      return (await response.json()) as T;
    } catch (error) {
      throw problemOfError(error);
    }
  }

  private async request(
    method: string,
    segments: string[],
    { search = {}, body, options }: IRequestDetails
  ): Promise<Response> {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(search)) {
      for (const one of [value].flat()) {
        if (one) {
          query.append(key, one);
        }
      }
    }
    if (options?.background) {
      query.set('no_track_activity', '1');
    }
    const text = query.toString();
    const url = apiUrl(this.settings, ...segments) + (text && `?${text}`);
    const init: RequestInit =
      body === undefined
        ? { method }
        : { method, body: body instanceof Blob ? body : JSON.stringify(body) };
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(url, init, this.settings);
    } catch (error) {
      throw problemOfError(error);
    }
    if (!response.ok) {
      throw await problemOfResponse(response);
    }
    return response;
  }
}

interface IRequestDetails {
  search?: Record<string, string | readonly string[]>;
  body?: object | Blob;
  options?: IRequestOptions | undefined;
}
