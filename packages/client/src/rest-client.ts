import { z } from 'zod'
import { localProblem, ProblemError } from './problem-error.ts'
import { problemSchema, type Problem } from './protocol/frames.ts'
import {
  acceptedSchema,
  eventPageSchema,
  eventSchema,
  imageStoredSchema,
  permissionAnsweredSchema,
  permissionListSchema,
  promptResultSchema,
  queueAddedSchema,
  queuedMessageSchema,
  queueListSchema,
  sessionInfoSchema,
  sessionPageSchema,
  type EventPage,
} from './protocol/rest.ts'
import type { eventQuerySchema, sessionQuerySchema } from './protocol/requests.ts'
import type {
  Accepted,
  ImageStored,
  ModelList,
  PermissionList,
  PromptResult,
  QueueAdded,
  QueuedMessageBody,
  QueueList,
  RestBodies,
  RestQueries,
  RestResults,
  SessionSummary,
  SessionSummaryPage,
} from './rest-values.ts'
import { readOpenQuestion } from './state-values.ts'
import { fromWire, toWire, type FromWire } from './wire-names.ts'

/** The address of a server, and the credentials for it. */
export interface ServerAddress {
  /** For example `http://127.0.0.1:4321`; for a page that the server serves, its own origin. */
  baseUrl: string
  /** For programs. Web pages use a cookie instead. */
  token?: string
  fetch?: typeof globalThis.fetch
}

/** Options of requests that change something. */
export interface ChangeOptions {
  /** The command id, which makes a request idempotent. */
  commandId?: string
  /** The ETag of the version to change. */
  ifMatch?: string
  signal?: AbortSignal
}

interface GetOptions {
  query?: Record<string, string | number | undefined>
  signal?: AbortSignal | undefined
}

/** The server's REST routes, one method each. All reject with `ProblemError`. */
export class RestClient {
  readonly #address: ServerAddress

  constructor(address: ServerAddress) {
    this.#address = address
  }

  async sessions(query: z.infer<typeof sessionQuerySchema> = {}, signal?: AbortSignal): Promise<SessionSummaryPage> {
    return this.#get('sessions', sessionPageSchema, { query, signal })
  }

  async createSession(body: RestBodies['createSession'], options?: ChangeOptions): Promise<SessionSummary> {
    return this.#send('POST', 'sessions', sessionInfoSchema, body, options)
  }

  async session(id: string, signal?: AbortSignal): Promise<SessionSummary> {
    return this.#get(`sessions/${part(id)}`, sessionInfoSchema, { signal })
  }

  async patchSession(id: string, body: RestBodies['patchSession'], options?: ChangeOptions): Promise<SessionSummary> {
    return this.#send('PATCH', `sessions/${part(id)}`, sessionInfoSchema, body, options)
  }

  /** Moves the session to the trash. */
  async deleteSession(id: string, options?: ChangeOptions): Promise<void> {
    await this.#send('DELETE', `sessions/${part(id)}`, z.unknown(), undefined, options)
  }

  /** Deletes the session for good, from any place. Returns the sessions that still contain copies of its entries. */
  async eraseSession(id: string, options?: ChangeOptions): Promise<{ forks: string[] }> {
    return this.#change('DELETE', `sessions/${part(id)}?erase=true`, undefined, options)
  }

  async fork(id: string, body: RestBodies['fork'] = {}, options?: ChangeOptions): Promise<SessionSummary> {
    return this.#send('POST', `sessions/${part(id)}/fork`, sessionInfoSchema, body, options)
  }

  async prompt(id: string, body: RestBodies['prompt'], options?: ChangeOptions): Promise<PromptResult> {
    return this.#send('POST', `sessions/${part(id)}/prompt`, promptResultSchema, body, options)
  }

  async abort(id: string, body: RestBodies['abort'] = {}, options?: ChangeOptions): Promise<Accepted> {
    return this.#send('POST', `sessions/${part(id)}/cancel`, acceptedSchema, body, options)
  }

  async compact(id: string, body: RestBodies['compact'] = {}, options?: ChangeOptions): Promise<Accepted> {
    return this.#send('POST', `sessions/${part(id)}/compact`, acceptedSchema, body, options)
  }

  /** Goes back to an entry, or says with `dryRun` what would happen. */
  async rewind(id: string, body: RestBodies['rewind'], options?: ChangeOptions): Promise<RestResults['rewind']> {
    return this.#change('POST', `sessions/${part(id)}/rewind`, body, options)
  }

  /** Lets the tools of the session work in a folder of a tool host. */
  async setWorkspace(
    id: string,
    body: RestBodies['setWorkspace'],
    options?: ChangeOptions,
  ): Promise<RestResults['setWorkspace']> {
    return this.#change('PUT', `sessions/${part(id)}/workspace`, body, options)
  }

  /** The tool hosts that are connected. */
  async toolHosts(signal?: AbortSignal): Promise<RestResults['toolHosts']> {
    return this.#view('tool-hosts', { signal })
  }

  async retry(id: string, options?: ChangeOptions): Promise<Accepted> {
    return this.#send('POST', `sessions/${part(id)}/retry`, acceptedSchema, {}, options)
  }

  async resume(id: string, body: RestBodies['resume'] = {}, options?: ChangeOptions): Promise<Accepted> {
    return this.#send('POST', `sessions/${part(id)}/resume`, acceptedSchema, body, options)
  }

  async queue(id: string, signal?: AbortSignal): Promise<QueueList> {
    return this.#get(`sessions/${part(id)}/queue`, queueListSchema, { signal })
  }

  async addToQueue(id: string, body: RestBodies['addToQueue'], options?: ChangeOptions): Promise<QueueAdded> {
    return this.#send('POST', `sessions/${part(id)}/queue`, queueAddedSchema, body, options)
  }

  async clearQueue(id: string, options?: ChangeOptions): Promise<void> {
    await this.#send('DELETE', `sessions/${part(id)}/queue`, z.unknown(), undefined, options)
  }

  async queuedMessage(id: string, messageId: string, signal?: AbortSignal): Promise<QueuedMessageBody> {
    return this.#get(`sessions/${part(id)}/queue/${part(messageId)}`, queuedMessageSchema, { signal })
  }

  async changeQueued(
    id: string,
    messageId: string,
    body: RestBodies['changeQueued'],
    options?: ChangeOptions,
  ): Promise<void> {
    await this.#send('PATCH', `sessions/${part(id)}/queue/${part(messageId)}`, z.unknown(), body, options)
  }

  async removeQueued(id: string, messageId: string, options?: ChangeOptions): Promise<void> {
    await this.#send('DELETE', `sessions/${part(id)}/queue/${part(messageId)}`, z.unknown(), undefined, options)
  }

  async events(id: string, query: z.infer<typeof eventQuerySchema> = {}, signal?: AbortSignal): Promise<EventPage> {
    // Lines keep the names of the log.
    return this.#getWire(`sessions/${part(id)}/events`, eventPageSchema, { query, signal })
  }

  async permissions(id: string, signal?: AbortSignal): Promise<PermissionList> {
    const { permissions } = await this.#getWire(`sessions/${part(id)}/permissions`, permissionListSchema, { signal })
    return { permissions: permissions.map(readOpenQuestion) }
  }

  async answer(id: string, requestId: string, body: RestBodies['answer'], options?: ChangeOptions): Promise<void> {
    const path = `sessions/${part(id)}/permissions/${part(requestId)}`
    await this.#send('POST', path, permissionAnsweredSchema, body, options)
  }

  /** Returns the id by which a prompt refers to the image. */
  async storeImage(id: string, image: Blob, options: ChangeOptions = {}): Promise<ImageStored> {
    const headers = changeHeaders(options, image.type)
    const init: RequestInit = { method: 'POST', body: image, headers, signal: options.signal ?? null }
    const answer = await this.#fetch(`sessions/${part(id)}/images`, init)
    return fromWire(await read(answer, imageStoredSchema))
  }

  async blob(id: string, sha256: string, signal?: AbortSignal): Promise<Blob> {
    const answer = await this.#fetch(`sessions/${part(id)}/blobs/${part(sha256)}`, { signal: signal ?? null })
    return answer.blob()
  }

  /** The session with its model, its mode, its usage and its place in the log. */
  async sessionDetails(id: string, signal?: AbortSignal): Promise<RestResults['sessionDetails']> {
    return this.#view(`sessions/${part(id)}`, { signal })
  }

  async archive(id: string, options?: ChangeOptions): Promise<RestResults['moved']> {
    return this.#change('POST', `sessions/${part(id)}/archive`, undefined, options)
  }

  async unarchive(id: string, options?: ChangeOptions): Promise<RestResults['moved']> {
    return this.#change('POST', `sessions/${part(id)}/unarchive`, undefined, options)
  }

  /** From the trash. */
  async restore(id: string, options?: ChangeOptions): Promise<RestResults['moved']> {
    return this.#change('POST', `sessions/${part(id)}/restore`, undefined, options)
  }

  /** A session with its blobs as one file; the body is a stream. */
  async exportSession(id: string, signal?: AbortSignal): Promise<Response> {
    return this.#fetch(`sessions/${part(id)}/export`, { signal: signal ?? null })
  }

  async tree(id: string, query: RestQueries['tree'] = {}, signal?: AbortSignal): Promise<RestResults['tree']> {
    return this.#view(`sessions/${part(id)}/tree`, { query, signal })
  }

  /** Complete entries around a place anywhere in the log. */
  async entries(id: string, query: RestQueries['entries'] = {}, signal?: AbortSignal): Promise<RestResults['entries']> {
    return this.#view(`sessions/${part(id)}/entries`, { query, signal }, windowNames)
  }

  async compare(id: string, query: RestQueries['compare'], signal?: AbortSignal): Promise<RestResults['compare']> {
    return this.#view(`sessions/${part(id)}/compare`, { query, signal })
  }

  /** What the model sees at an entry; by default at the leaf. */
  async context(id: string, entryId?: string, signal?: AbortSignal): Promise<RestResults['context']> {
    return this.#view(`sessions/${part(id)}/context`, { query: { entryId }, signal })
  }

  /** One complete entry, with the names of the log. */
  async entry(id: string, entryId: string, signal?: AbortSignal): Promise<EventPage['events'][number]> {
    return this.#getWire(`sessions/${part(id)}/entries/${part(entryId)}`, eventSchema, { signal })
  }

  async entryRequest(id: string, entryId: string, signal?: AbortSignal): Promise<RestResults['entryRequest']> {
    return this.#view(`sessions/${part(id)}/entries/${part(entryId)}/request`, { signal })
  }

  async player(id: string, query: RestQueries['player'] = {}, signal?: AbortSignal): Promise<RestResults['player']> {
    return this.#view(`sessions/${part(id)}/player`, { query, signal })
  }

  async search(query: RestQueries['search'], signal?: AbortSignal): Promise<RestResults['search']> {
    return this.#view('search', { query, signal })
  }

  /** Calls, tokens and cost by day, model and session. */
  async usage(query: RestQueries['usage'] = {}, signal?: AbortSignal): Promise<RestResults['usage']> {
    return this.#view('usage', { query, signal })
  }

  /** File names in the session's folder that start with a text. */
  async files(id: string, query: RestQueries['files'] = {}, signal?: AbortSignal): Promise<RestResults['files']> {
    return this.#view(`sessions/${part(id)}/files`, { query, signal })
  }

  async file(id: string, query: RestQueries['file'], signal?: AbortSignal): Promise<RestResults['file']> {
    return this.#view(`sessions/${part(id)}/files/content`, { query, signal })
  }

  async fileBytes(id: string, path: string, signal?: AbortSignal): Promise<Blob> {
    const answer = await this.#fetch(`sessions/${part(id)}/files/raw${suffixOf({ path })}`, { signal: signal ?? null })
    return answer.blob()
  }

  async gitStatus(id: string, signal?: AbortSignal): Promise<RestResults['gitStatus']> {
    return this.#view(`sessions/${part(id)}/git`, { signal })
  }

  async gitDiff(id: string, query: RestQueries['gitDiff'], signal?: AbortSignal): Promise<RestResults['gitDiff']> {
    return this.#view(`sessions/${part(id)}/git/diff`, { query, signal })
  }

  /** Commands that run in the background, and those that ended recently. */
  async jobs(id: string, signal?: AbortSignal): Promise<RestResults['jobs']> {
    return this.#view(`sessions/${part(id)}/jobs`, { signal })
  }

  /** The newest output of a job. */
  async job(
    id: string,
    jobId: string,
    { signal, ...query }: RestQueries['job'] & { signal?: AbortSignal } = {},
  ): Promise<RestResults['job']> {
    return this.#view(`sessions/${part(id)}/jobs/${part(jobId)}`, { query, signal })
  }

  async stopJob(id: string, jobId: string, options?: ChangeOptions): Promise<RestResults['stopJob']> {
    return this.#change('POST', `sessions/${part(id)}/jobs/${part(jobId)}/stop`, {}, options)
  }

  async slashCommands(id: string, signal?: AbortSignal): Promise<RestResults['slashCommands']> {
    return this.#view(`sessions/${part(id)}/commands`, { signal })
  }

  /** Folders for new sessions: the roots, or the folders in this one. */
  async folders(path?: string, signal?: AbortSignal): Promise<RestResults['folders']> {
    return this.#view('folders', { query: { path }, signal })
  }

  async agents(signal?: AbortSignal): Promise<RestResults['agents']> {
    return this.#view('agents', { signal })
  }

  async settings(cwd?: string, signal?: AbortSignal): Promise<RestResults['settings']> {
    return this.#view('settings', { query: { cwd }, signal })
  }

  async changeSettings(body: RestBodies['changeSettings'], options?: ChangeOptions): Promise<RestResults['settings']> {
    return this.#change('PATCH', 'settings', body, options)
  }

  async caller(signal?: AbortSignal): Promise<RestResults['caller']> {
    return this.#view('caller', { signal })
  }

  async tokens(signal?: AbortSignal): Promise<RestResults['tokens']> {
    return this.#view('tokens', { signal })
  }

  /** Only this result has the token itself. */
  async createToken(body: RestBodies['createToken'], options?: ChangeOptions): Promise<RestResults['createToken']> {
    return this.#change('POST', 'tokens', body, options)
  }

  async revokeToken(tokenId: string, options?: ChangeOptions): Promise<void> {
    await this.#change('DELETE', `tokens/${part(tokenId)}`, undefined, options)
  }

  async beginPairing(body: RestBodies['beginPairing'], options?: ChangeOptions): Promise<RestResults['beginPairing']> {
    return this.#change('POST', 'pairing', body, options)
  }

  /** What a pairing code grants; the code stays valid. */
  async previewPairing(code: string, options?: ChangeOptions): Promise<RestResults['previewPairing']> {
    return this.#change('POST', 'pair/preview', { code }, options)
  }

  async pair(body: RestBodies['pair'], options?: ChangeOptions): Promise<RestResults['pair']> {
    return this.#change('POST', 'pair', body, options)
  }

  /** Exchanges a token for a cookie. */
  async signIn(token: string, options?: ChangeOptions): Promise<RestResults['token']> {
    return this.#change('POST', 'sign-in', { token }, options)
  }

  /** Deletes the cookie, and with `revoke` also its token. */
  async signOut(body: { revoke?: boolean } = {}, options?: ChangeOptions): Promise<void> {
    await this.#change('POST', 'sign-out', body, options)
  }

  /** The `applicationServerKey` for `PushManager.subscribe`. */
  async pushKey(signal?: AbortSignal): Promise<string> {
    return (await this.#view<{ publicKey: string }>('push/key', { signal })).publicKey
  }

  async pushSubscriptions(signal?: AbortSignal): Promise<RestResults['pushSubscriptions']> {
    return this.#view('push/subscriptions', { signal })
  }

  async subscribePush(
    { endpoint, keys }: RestBodies['subscribePush'],
    options?: ChangeOptions,
  ): Promise<RestResults['subscribePush']> {
    return this.#change('POST', 'push/subscriptions', { endpoint, keys }, options)
  }

  async unsubscribePush(subscriptionId: string, options?: ChangeOptions): Promise<void> {
    await this.#change('DELETE', `push/subscriptions/${part(subscriptionId)}`, undefined, options)
  }

  /** Rejects if the server is not ready. */
  async ready(signal?: AbortSignal): Promise<RestResults['ready']> {
    return this.#view('ready', { signal })
  }

  async version(signal?: AbortSignal): Promise<RestResults['version']> {
    return this.#view('version', { signal })
  }

  async models(signal?: AbortSignal): Promise<ModelList> {
    return this.#view('models', { signal })
  }

  /** The feed of the session list, as an event stream. */
  async sessionFeed(signal: AbortSignal): Promise<Response> {
    return this.#fetch('events', { signal, headers: { accept: 'text/event-stream' } })
  }

  /** The URL of a session's WebSocket. */
  socketUrl(id: string): string {
    const url = this.#url(`sessions/${part(id)}/ws`)
    url.protocol = url.protocol.replace('http', 'ws')
    return url.href
  }

  async #get<T>(path: string, schema: z.ZodType<T>, options: GetOptions): Promise<FromWire<T>> {
    return fromWire(await this.#getWire(path, schema, options))
  }

  async #getWire<T>(path: string, schema: z.ZodType<T>, { query = {}, signal }: GetOptions): Promise<T> {
    return read(await this.#fetch(path + suffixOf(query), { signal: signal ?? null }), schema)
  }

  /** A result that is not validated member by member: that would more than double the size of this client. */
  async #view<T>(path: string, options: GetOptions, foreign = foreignNames): Promise<T> {
    return fromWire(await this.#getWire(path, z.looseObject({}), options), foreign) as T
  }

  async #change<T>(method: string, path: string, body: unknown, options?: ChangeOptions): Promise<T> {
    return (await this.#send(method, path, z.unknown(), body, options)) as T
  }

  async #send<T>(
    method: string,
    path: string,
    schema: z.ZodType<T>,
    body: unknown,
    options: ChangeOptions = {},
  ): Promise<FromWire<T>> {
    const headers = changeHeaders(options, body === undefined ? undefined : 'application/json')
    const init: RequestInit = { method, headers, signal: options.signal ?? null }
    if (body !== undefined) init.body = JSON.stringify(toWire(body))
    return fromWire(await read(await this.#fetch(path, init), schema), foreignNames)
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const { fetch = globalThis.fetch, token } = this.#address
    const url = this.#url(path)
    const headers = new Headers(init.headers)
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    let answer: Response
    try {
      answer = await fetch(url, { ...init, headers, credentials: 'same-origin', redirect: 'error' })
    } catch (error) {
      if (init.signal?.aborted) throw error
      throw localProblem(
        'unreachable',
        `${url.origin} does not answer. Check the address and that the server is running.`,
        { cause: error },
      )
    }
    if (!answer.ok) throw new ProblemError(await problemIn(answer))
    return answer
  }

  #url(path: string): URL {
    const { baseUrl } = this.#address
    return new URL(`api/${path}`, baseUrl.endsWith('/') ? baseUrl : `${baseUrl}/`)
  }
}

/** Members with the names of the log, of a tool or of a setting. */
const foreignNames = new Set([
  'input',
  'data',
  'params',
  'provider_metadata',
  'input_schema',
  'message',
  'tools',
  'value',
])
const windowNames = new Set(['entries'])

function suffixOf(query: NonNullable<GetOptions['query']>): string {
  const asked = new URLSearchParams()
  for (const [name, value] of Object.entries(toWire(query) as typeof query))
    if (value !== undefined) asked.set(name, String(value))
  return asked.size > 0 ? `?${asked.toString()}` : ''
}

/** Keeps an id from escaping its part of the path. */
function part(id: string): string {
  if (/^\.*$/.test(id)) throw localProblem('invalid-command', `${JSON.stringify(id)} is not a valid id.`)
  return encodeURIComponent(id)
}

function changeHeaders({ commandId, ifMatch }: ChangeOptions, contentType: string | undefined): Headers {
  const headers = new Headers()
  if (contentType !== undefined) headers.set('content-type', contentType)
  if (commandId !== undefined) headers.set('idempotency-key', commandId)
  if (ifMatch !== undefined) headers.set('if-match', ifMatch)
  return headers
}

async function read<T>(answer: Response, schema: z.ZodType<T>): Promise<T> {
  const text = await answer.text()
  try {
    return schema.parse(text === '' ? undefined : JSON.parse(text))
  } catch (error) {
    throw localProblem('unreadable-answer', `${answer.url} sent a malformed response.`, { cause: error })
  }
}

/** A proxy's response is not a problem document; its status is still reported. */
async function problemIn(answer: Response): Promise<Problem> {
  const body: unknown = await answer.json().catch(() => undefined)
  const told = problemSchema.loose().safeParse(body)
  if (told.success) return told.data
  return { type: 'http', title: answer.statusText || 'Failed', status: answer.status }
}
