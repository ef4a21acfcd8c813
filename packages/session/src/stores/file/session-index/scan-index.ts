import { join } from 'node:path'
import { isId } from '../../../line/ids.ts'
import type { ReadableLog } from '../../../log/log-store.ts'
import { sessionInfoOf, type SessionInfo } from '../../../state/session-info.ts'
import { SessionReader } from '../../../log/session-reader.ts'
import { pageOf } from '../../list-page.ts'
import { NewestHits } from '../../search-hits.ts'
import { searchLog } from '../../search-log.ts'
import type { FilePort } from '../file-port.ts'
import type { IndexSource, ListIndex } from './list-index.ts'

/** Answers by reading every log. Needs no index file; the time grows with the number of sessions. */
export function scanIndex(port: FilePort): ListIndex {
  return {
    list: async (source, query) => {
      const rows: SessionInfo[] = []
      for await (const { id, log } of logsIn(port, source)) {
        const { state } = await SessionReader.open(log, { whole: true })
        rows.push(sessionInfoOf(state, { id, path: join(source.folder, id) }))
      }
      return pageOf(rows, query)
    },
    search: async (source, query) => {
      const hits = new NewestHits(query)
      for await (const { id, log } of logsIn(port, source)) {
        if (query.among?.has(id) !== false) await searchLog(log, { text: query.text, sessionId: id, hits })
      }
      return hits.list()
    },
    purge: async () => undefined,
    close: () => undefined,
  }
}

async function* logsIn(port: FilePort, source: IndexSource): AsyncIterable<{ id: string; log: ReadableLog }> {
  for (const id of port.names(source.folder).filter(isId)) {
    // Other files in the folder are not sessions and must not hide the rest.
    const log = await source.openLog(id).catch(() => undefined)
    if (!log) continue
    try {
      yield { id, log }
    } finally {
      await log.close()
    }
  }
}
