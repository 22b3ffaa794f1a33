import { ServerConnection } from '@jupyterlab/services';

/** Why a request failed. */
export type ProblemKind =
  'missing' | 'outdated' | 'forbidden' | 'foreign' | 'unreachable' | 'failed';

/** A failed request, with the server's sentence; it is empty where only the kind tells anything. */
export class RequestProblem extends Error {
  constructor(
    readonly kind: ProblemKind,
    message: string,
    readonly status = 0
  ) {
    super(message);
  }
}

/** Tell a failed answer's kind. A 404 that carries no sentence comes from a server without our extension. */
export async function problemOfResponse(
  response: Response
): Promise<RequestProblem> {
  const message = await messageOf(response);
  if (response.status === 404 && message === null) {
    return new RequestProblem('missing', '', 404);
  }
  const kind = [401, 403].includes(response.status)
    ? 'forbidden'
    : [502, 503, 504].includes(response.status)
      ? 'unreachable'
      : 'failed';
  return new RequestProblem(
    kind,
    message ?? `${response.status} ${response.statusText}`,
    response.status
  );
}

/** Give any error a kind. */
export function problemOfError(error: unknown): RequestProblem {
  if (error instanceof RequestProblem) {
    return error;
  }
  if (error instanceof ServerConnection.NetworkError) {
    return new RequestProblem('unreachable', '');
  }
  const message = error instanceof Error ? error.message : String(error);
  return new RequestProblem('failed', message);
}

async function messageOf(response: Response): Promise<string | null> {
  try {
    const body: unknown = await response.json();
    if (typeof body === 'object' && body !== null && 'message' in body) {
      // Tornado's own 404 is JSON too on some servers, with this message.
      return typeof body.message === 'string' && body.message !== 'Not Found'
        ? body.message
        : null;
    }
  } catch {
    // Not JSON: a page of the server's, or of a proxy before it.
  }
  return null;
}
