import { join } from 'node:path'
import { isId } from '../../../line/ids.ts'
import type { ReadableLog } from '../../../log/log-store.ts'
import { sessionInfoOf, type SearchHit, type SessionInfo } from '../../../state/session-info.ts'
import { SessionReader } from '../../../log/session-reader.ts'
import { pageOf } from '../../list-page.ts'
import { newestHits, searchLog } from '../../search-log.ts'
import type { FilePort } from '../file-port.ts'
import type { IndexSource, ListIndex } from './list-index.ts'

/** Answers by reading every log: always right, needs nothing, and is as slow as there are sessions. */
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
      const hits: SearchHit[] = []
      for await (const { id, log } of logsIn(port, source)) {
        if (query.among?.has(id) === false) continue
        hits.push(...(await searchLog(log, { ...query, sessionId: id })))
      }
      return newestHits(hits, query)
    },
    close: () => undefined,
  }
}

async function* logsIn(port: FilePort, source: IndexSource): AsyncIterable<{ id: string; log: ReadableLog }> {
  for (const id of port.names(source.folder).filter(isId)) {
    // Something else that lies there is no session, and must not hide the others.
    const log = await source.openLog(id).catch(() => undefined)
    if (!log) continue
    try {
      yield { id, log }
    } finally {
      await log.close()
    }
  }
}
