import type { LoadedSettings, ProjectTrust } from '@tapetree/agent'
import { harmlessLine } from '../harmless.ts'
import type { OpenedSession } from '../session-source.ts'
import type { Notice } from '../tui/chat-options.ts'

export interface Noticed {
  first: OpenedSession | undefined
  settings: LoadedSettings
  trust?: ProjectTrust
  /** What went wrong so far, a sentence each. */
  problems?: readonly string[]
}

/** What stands above the conversation, each once. Who owns the session may change while the chat runs. */
export function noticesOf({ first, settings, trust, problems = [] }: Noticed): Notice[] {
  const lasting = [...settings.problems.map(({ message }) => message), ...problems]
  if (trust?.state === 'untrusted' || trust?.state === 'changed') {
    lasting.push(`What ${trust.project.root} says about how to work in it is not used, because it is not trusted.`)
  }
  const notices: Notice[] = [...new Set(lasting.map(harmlessLine))].map((text) => ({ text }))
  const { access } = first ?? {}
  const owner =
    access?.type === 'attached'
      ? `The session runs at ${access.where}; this is one of its screens.`
      : access?.type === 'read-only'
        ? access.reason
        : undefined
  if (owner !== undefined) notices.push({ text: harmlessLine(owner), while: () => first?.access === access })
  return notices
}
