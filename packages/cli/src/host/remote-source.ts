import {
  ProblemError,
  RemoteSession,
  RestClient,
  type Connect,
  type ModelList,
  type ServerAddress,
  type SessionSummary,
} from '@tapetree/client'
import {
  fileListSchema,
  folderListSchema,
  movedSessionSchema,
  problemSchema,
  searchResultSchema,
} from '@tapetree/client/protocol'
import type { SearchHit, SessionInfo, SessionPage, SessionQuery } from '@tapetree/session'
import { fromDisk, type DiskLine, type Entry } from '@tapetree/session/format'
import type { Comparison } from '@tapetree/session/screen'
import type { TreeNode } from '@tapetree/session/view'
import type { z } from 'zod'
import {
  backgroundJob,
  jobOutputBytes,
  type BackgroundJobs,
  type OfferedModel,
  type OpenedSession,
  type SessionAccess,
  type SessionSource,
} from '../session-source.ts'

export interface RemoteSourceOptions {
  address: ServerAddress & { connect: Connect }
  /** The server, as shown to people. */
  where: string
  /** How many entries a screen loads first. */
  window?: number
  clientName?: string
}

/** The sessions of a server. */
export function remoteSource({ address, where, window = 200, clientName }: RemoteSourceOptions): SessionSource {
  const rest = new RestClient(address)
  /** On a server, files are those of the session's folder. */
  let current: string | undefined
  const open = async (sessionId: string, cwd?: string): Promise<OpenedSession> => {
    const handle = await RemoteSession.open({
      ...address,
      sessionId,
      window,
      client: { kind: 'terminal', ...(clientName !== undefined && { name: clientName }) },
    })
    await handle.ready
    current = sessionId
    return {
      handle,
      cwd,
      get access(): SessionAccess {
        const readOnly = handle.state('read_only')
        return readOnly ? { type: 'read-only', reason: readOnly.reason } : { type: 'attached', where }
      },
    }
  }
  return {
    open: async (sessionId) => open(sessionId, (await rest.session(sessionId)).cwd),
    create: async () => {
      const made = await rest.createSession({ cwd: await firstRoot(address) })
      return open(made.id, made.cwd)
    },
    fork: async (sessionId, entryId) => {
      const forked = await rest.fork(sessionId, entryId === undefined ? {} : { entryId })
      return open(forked.id, forked.cwd)
    },
    list: async (query) => (await sessionPage(rest, query)).sessions,
    rename: async (sessionId, name) => void (await rest.patchSession(sessionId, { name })),
    archive: async (sessionId) =>
      void (await ask(address, `sessions/${sessionId}/archive`, movedSessionSchema, 'POST')),
    delete: (sessionId) => rest.deleteSession(sessionId),
    search: async (text) => (await ask(address, `search?${query({ q: text })}`, searchResultSchema)).hits.map(hitOf),
    models: async () => (await rest.models()).models.map(offeredModel),
    tree: (sessionId) => readTree(rest, sessionId),
    compare: async (sessionId, entries) =>
      (await rest.compare(sessionId, { ...entries, diff: 'true' })) as unknown as Comparison,
    files: async (typed) => {
      if (current === undefined) return []
      const { files } = await ask(address, `sessions/${current}/files?${query({ q: typed })}`, fileListSchema)
      return files.map(({ path, type }) => (type === 'folder' ? `${path}/` : path))
    },
    keepImage: async (sessionId, { bytes, mediaType }) => {
      const image = new Blob([new Uint8Array(bytes)], { type: mediaType })
      return (await rest.storeImage(sessionId, image)).id
    },
    jobs: remoteJobs(rest),
    close: async () => undefined,
  }
}

function remoteJobs(rest: RestClient): BackgroundJobs {
  return {
    isRemote: true,
    list: async (sessionId) => (await rest.jobs(sessionId)).jobs.map(backgroundJob),
    read: async (sessionId, jobId) => {
      try {
        const { job, output, isCut } = await rest.job(sessionId, jobId, { limit: jobOutputBytes })
        return { job: backgroundJob(job), text: output, isCut }
      } catch (error) {
        if (error instanceof ProblemError && error.type === 'job-not-found') return undefined
        throw error
      }
    },
    stop: async (sessionId, jobId) => void (await rest.stopJob(sessionId, jobId)),
  }
}

function query(values: Record<string, string>): string {
  return new URLSearchParams(values).toString()
}

async function firstRoot(address: ServerAddress): Promise<string> {
  const { folders } = await ask(address, 'folders', folderListSchema)
  const [root] = folders
  if (root) return root.path
  const detail = 'The server has no folder to work in: start it with --root.'
  throw new ProblemError({ type: 'folder-not-found', title: 'Folder not found', status: 404, detail })
}

/** For the few routes without a client method. */
async function ask<T>(
  { baseUrl, token, fetch = globalThis.fetch }: ServerAddress,
  path: string,
  schema: z.ZodType<T>,
  method: 'GET' | 'POST' = 'GET',
): Promise<T> {
  // A server may be below a path.
  const url = new URL(`api/${path}`, baseUrl.endsWith('/') ? baseUrl : `${baseUrl}/`)
  const answer = await fetch(url, {
    method,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    redirect: 'error',
  })
  const body: unknown = await answer.json().catch(() => undefined)
  if (answer.ok) return schema.parse(body)
  const told = problemSchema.loose().safeParse(body)
  throw new ProblemError(told.success ? told.data : { type: 'http', title: answer.statusText, status: answer.status })
}

function hitOf({
  session_id,
  entry_id,
  matches = [],
  ...hit
}: z.infer<typeof searchResultSchema>['hits'][number]): SearchHit {
  return { ...hit, matches, sessionId: session_id, entryId: entry_id }
}

export function offeredModel(model: ModelList['models'][number]): OfferedModel {
  const { provider, modelId, name = modelId, contextWindow: contextTokens, key } = model
  return {
    reference: `${provider}/${modelId}`,
    provider,
    modelId,
    name,
    ...(contextTokens !== undefined && { contextTokens }),
    thinkingLevels: model.thinkingLevels ?? [],
    isUsable: key !== 'missing',
  }
}

const pageLines = 500

/** The whole tree of a session on a server, from its lines. */
async function readTree(rest: RestClient, sessionId: string): Promise<TreeNode[]> {
  const views = new Map<string, TreeNode>()
  const roots: TreeNode[] = []
  const labels = new Map<string, string>()
  for await (const entry of entriesOf(rest, sessionId)) {
    if (entry.type === 'label') labels.set(entry.label.targetId, entry.label.label ?? '')
    const node: TreeNode = { entry, children: [] }
    views.set(entry.id, node)
    const parent = entry.parentId === null ? undefined : views.get(entry.parentId)
    if (parent) parent.children.push(node)
    else roots.push(node)
  }
  for (const [target, label] of labels) {
    const node = views.get(target)
    if (node && label !== '') node.label = label
  }
  return roots
}

async function* entriesOf(rest: RestClient, sessionId: string): AsyncGenerator<Entry> {
  let after = 0
  for (;;) {
    const { events, head } = await rest.events(sessionId, { after, limit: pageLines })
    for (const event of events) {
      if (typeof event['id'] !== 'string') continue
      const line = fromDisk(event as unknown as DiskLine, event.seq)
      if ('parentId' in line) yield line
    }
    const last = events.at(-1)
    if (!last || last.seq >= head.seq) return
    after = last.seq
  }
}

/** The largest page that a server returns. */
const maxListed = 200

/** Lists sessions of a server as a store lists its own. */
export async function sessionPage(rest: RestClient, query: SessionQuery): Promise<SessionPage> {
  const { sessions, cursor } = await rest.sessions(queryOf(query))
  return { sessions: sessions.map(infoOf), ...(cursor !== undefined && { cursor }) }
}

function queryOf({ limit = maxListed, text, ...rest }: SessionQuery): Parameters<RestClient['sessions']>[0] {
  return { ...rest, limit: Math.min(limit, maxListed), ...(text !== undefined && { q: text }) }
}

export function infoOf(summary: SessionSummary): SessionInfo {
  const { cwd, parentSession, subagent, firstText, estimated } = summary
  return {
    id: summary.id,
    name: summary.name,
    created: summary.created,
    modified: summary.modified,
    messageCount: summary.messageCount,
    ...(cwd !== undefined && { cwd }),
    ...(parentSession !== undefined && { parentSession }),
    ...(subagent && { subagent }),
    ...(firstText !== undefined && { firstText }),
    status: summary.status,
    queueLength: summary.queueLength,
    cost: summary.cost,
    damaged: summary.damaged,
    ...(estimated !== undefined && { estimated }),
  }
}
