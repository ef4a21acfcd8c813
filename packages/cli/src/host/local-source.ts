import type { ModelReference, Session, SessionStore, TreeNode } from '@tapetree/session'
import type { OfferedModel, SessionSource } from '../session-source.ts'
import { changeSession } from './change-session.ts'
import { FileMatches } from './list-files.ts'
import type { SessionHost } from './session-host.ts'
import { referenceOf, type ListedModel, type ModelRegistry } from '@tapetree/agent'

export interface LocalSourceOptions {
  host: SessionHost
  store: SessionStore
  /** The working folder of new sessions. */
  cwd: string
  /** The model of new sessions, if one was chosen. */
  model?: ModelReference | undefined
  models: () => Promise<OfferedModel[]>
}

export interface LocalSource extends SessionSource {
  /** The sessions that `create` has made, oldest first. */
  readonly made: readonly string[]
}

/** The sessions of this user on this machine, including those that other processes own. */
export function localSource({ host, store, cwd, model, models }: LocalSourceOptions): LocalSource {
  const files = new FileMatches(cwd)
  const made: string[] = []
  return {
    open: (sessionId) => host.open(sessionId),
    made,
    create: async () => {
      const opened = await host.openNew({ cwd, ...(model && { model }) })
      made.push(opened.handle.sessionId)
      return opened
    },
    fork: async (sessionId, entryId) => {
      const forked = await reading(sessionId, (session) =>
        entryId === undefined ? session.copyAll() : session.createBranchedSession(entryId),
      )
      return host.open(forked)
    },
    list: async (query) => (await store.list(query)).sessions,
    rename: (sessionId, name) =>
      changeSession(store, sessionId, {
        here: (session) => session.appendSessionInfo(name),
        there: (handle) => handle.run('rename', { name }),
      }),
    archive: (sessionId) => host.putAway(sessionId, 'archive'),
    delete: (sessionId) => host.putAway(sessionId, 'trash'),
    search: (text) => store.search({ text }),
    models,
    tree: (sessionId): Promise<TreeNode[]> => reading(sessionId, (session) => session.getTree()),
    files: (query) => files.matching(query),
    keepImage: (sessionId, image) => host.keepImage(sessionId, image),
    close: () => host.close(),
  }

  async function reading<T>(sessionId: string, read: (session: Session) => Promise<T>): Promise<T> {
    await using session = await store.open(sessionId, { readOnly: true })
    return await read(session)
  }
}

/** All available models, including those of servers on this machine. */
export async function offeredModels(registry: ModelRegistry): Promise<OfferedModel[]> {
  await registry.discover()
  return (await registry.list()).map(offered)
}

function offered(model: ListedModel): OfferedModel {
  const { provider, id, name, contextWindow, thinkingLevels, key } = model
  return {
    reference: referenceOf(model),
    provider,
    modelId: id,
    name,
    ...(contextWindow !== undefined && { contextTokens: contextWindow }),
    thinkingLevels,
    isUsable: key.type !== 'missing',
  }
}
