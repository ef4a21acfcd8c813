import type { SessionSource } from '../../session-source.ts'

/** A source that is still being made: whoever asks waits for it. */
export function lateSource(source: Promise<SessionSource>): SessionSource {
  // Who asks is told what went wrong; nobody else has to be.
  source.catch(() => undefined)
  return {
    open: async (sessionId) => (await source).open(sessionId),
    create: async () => (await source).create(),
    fork: async (sessionId, entryId) => (await source).fork(sessionId, entryId),
    list: async (query) => (await source).list(query),
    rename: async (sessionId, name) => (await source).rename(sessionId, name),
    archive: async (sessionId) => (await source).archive(sessionId),
    delete: async (sessionId) => (await source).delete(sessionId),
    search: async (text) => (await source).search(text),
    models: async () => (await source).models(),
    tree: async (sessionId) => (await source).tree(sessionId),
    files: async (query) => (await source).files(query),
    keepImage: async (sessionId, image) => (await source).keepImage(sessionId, image),
    close: async () => (await source).close(),
  }
}
