import type { SessionInfo } from '@tapetree/session'
import { ageOf } from '../text/amounts.ts'
import { costText } from '../text/cost-text.ts'
import { harmlessLine } from '../text/harmless.ts'
import { outputTable, type Column } from '../text/output-table.ts'
import { sessionTitle } from '../text/session-title.ts'
import { shortIds } from '../text/short-ids.ts'

const columns: readonly Column[] = [
  { title: 'ID' },
  { title: 'AGE', align: 'right' },
  { title: 'STATUS' },
  { title: 'MESSAGES', align: 'right' },
  { title: 'COST', align: 'right' },
  { title: 'NAME', flexible: true },
]

const folderColumn: Column = { title: 'FOLDER' }

export interface SessionTableOptions {
  now: number
  /** Sessions of several folders say which. */
  hasFolders: boolean
  width: number | undefined
}

export function sessionTable(sessions: readonly SessionInfo[], options: SessionTableOptions): string {
  const ids = shortIds(sessions.map(({ id }) => id))
  const rows = sessions.map((session) => {
    const { id, modified, messageCount, cost, estimated } = session
    const about = estimated ? '~' : ''
    return [
      ids.get(id) ?? id,
      ageOf(modified, options.now),
      statusText(session),
      `${about}${messageCount}`,
      `${about}${costText(cost)}`,
      ...(options.hasFolders ? [harmlessLine(session.cwd ?? '')] : []),
      sessionTitle(session),
    ]
  })
  return outputTable(options.hasFolders ? columns.toSpliced(5, 0, folderColumn) : columns, rows, options.width)
}

function statusText({ status, stopped, damaged, queueLength }: SessionInfo): string {
  const waiting = queueLength > 0 ? `, ${queueLength} waiting` : ''
  return `${stopped?.type ?? (status === 'requires_action' ? 'asks' : status)}${waiting}${damaged ? ', damaged' : ''}`
}
