import type { LoadedSettings, ProjectTrust } from '@tapetree/agent'
import { harmlessLine } from '../harmless.ts'
import type { OpenedSession } from '../session-source.ts'

export interface Noticed {
  first: OpenedSession | undefined
  settings: LoadedSettings
  trust?: ProjectTrust
  /** What went wrong so far, a sentence each. */
  problems?: readonly string[]
}

/** What stands above the conversation, each once. */
export function noticesOf({ first, settings, trust, problems = [] }: Noticed): string[] {
  const notices = [...settings.problems.map(({ message }) => message), ...problems]
  if (trust?.state === 'untrusted' || trust?.state === 'changed') {
    notices.push(`What ${trust.project.root} says about how to work in it is not used, because it is not trusted.`)
  }
  if (first?.access.type === 'attached')
    notices.push(`The session runs at ${first.access.where}; this is one of its screens.`)
  if (first?.access.type === 'read-only') notices.push(first.access.reason)
  return [...new Set(notices.map(harmlessLine))]
}
