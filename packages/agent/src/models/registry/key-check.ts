import type { ProviderApi } from '../hosts.ts'
import type { ModelProvider } from './catalogue.ts'
import { limitedText } from './limited-json.ts'

export type KeyCheck =
  | { type: 'ok' }
  /** There is no key, but one is required. */
  | { type: 'missing'; message: string }
  | { type: 'refused'; message: string }
  /** The key could not be checked: no connection, no answer in time, or an unrelated answer. */
  | { type: 'unreachable'; message: string }

/** One free request. It follows no redirect: the key is for this URL only. */
export async function checkKey(
  provider: ModelProvider,
  key: string | undefined,
  { fetch, signal }: { fetch: typeof globalThis.fetch; signal: AbortSignal },
): Promise<KeyCheck> {
  const { name, baseUrl, keyCheckPath = '/models', headers } = provider
  let response: Response
  try {
    response = await fetch(urlBelow(baseUrl, keyCheckPath), {
      redirect: 'manual',
      signal,
      headers: { ...headers, ...keyHeaders(provider, key) },
    })
  } catch (error) {
    const why = signal.aborted ? 'did not answer in time' : `cannot be reached (${reasonOf(error)})`
    return { type: 'unreachable', message: `${name} ${why}.` }
  }
  if (response.ok) {
    await response.body?.cancel()
    return { type: 'ok' }
  }
  if (await isRefusal(response)) return { type: 'refused', message: `${name} does not accept the key.` }
  return {
    type: 'unreachable',
    message: `${name} answered with status ${response.status}, so the key could not be checked.`,
  }
}

/** A query of the base URL stays after the path. */
function urlBelow(baseUrl: string, path: string): string {
  const [address = '', query] = baseUrl.split(/(?=\?)/)
  return `${address}${path}${query ?? ''}`
}

function keyHeaders({ api }: ModelProvider, key: string | undefined): Record<string, string> {
  const version: Record<string, string> = api === 'anthropic' ? { 'anthropic-version': '2023-06-01' } : {}
  return key === undefined ? version : { ...version, ...keyHeader[api](key) }
}

const keyHeader: Record<ProviderApi, (key: string) => Record<string, string>> = {
  anthropic: (key) => ({ 'x-api-key': key }),
  google: (key) => ({ 'x-goog-api-key': key }),
  openai: (key) => ({ authorization: `Bearer ${key}` }),
  'openai-compatible': (key) => ({ authorization: `Bearer ${key}` }),
}

/** Google answers 400 to an invalid key. */
async function isRefusal(response: Response): Promise<boolean> {
  if (response.status !== 400) {
    await response.body?.cancel()
    return response.status === 401 || response.status === 403
  }
  try {
    return (await limitedText(response, 64 * 1024)).includes('API_KEY_INVALID')
  } catch {
    return false // too long or incomplete: it says nothing about the key
  }
}

/** Never the request: it contains the key. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error
  const { code } = (cause ?? error) as NodeJS.ErrnoException
  return code ?? message
}
