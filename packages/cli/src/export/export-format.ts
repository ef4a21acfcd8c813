import type { Session, SessionStore } from '@tapetree/session'
import { extname } from 'node:path'
import { exportedSession } from './exported-session.ts'
import { htmlExport } from './html-export.ts'
import { markdownExport } from './markdown-export.ts'
import { redactedPack } from './redacted-pack.ts'
import type { RedactionTally } from './redaction-tally.ts'

export type ExportFormat = 'bundle' | 'markdown' | 'html'

export const exportEndings: Record<ExportFormat, string> = { bundle: '.tapetree', markdown: '.md', html: '.html' }

/** What the name of a file says. */
export function formatOfFile(file: string): ExportFormat | undefined {
  const ending = extname(file).toLowerCase()
  if (ending === '.htm') return 'html'
  return (Object.keys(exportEndings) as ExportFormat[]).find((format) => exportEndings[format] === ending)
}

/** The session as it goes out, piece by piece, without secrets. */
export async function* exportOf(
  format: ExportFormat,
  { store, session, tally }: { store: SessionStore; session: Session; tally: RedactionTally },
): AsyncGenerator<string | Uint8Array> {
  switch (format) {
    case 'bundle':
      yield* redactedPack(store.pack(session.id), tally)
      return
    case 'markdown':
      yield* markdownExport(await exportedSession(session, { tally, scope: 'path' }))
      return
    case 'html':
      yield* htmlExport(await exportedSession(session, { tally, scope: 'tree' }))
      return
    default:
      format satisfies never
  }
}
