import type { LoadedSettings, ProjectTrust } from '@tapetree/agent'
import { harmlessLine } from '../../text/harmless.ts'
import type { OpenedSession } from '../../session-source.ts'
import type { Notice } from '../../tui/chat-options.ts'

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
  const owner = first && ownerNotice(first)
  const { access } = first ?? {}
  if (owner !== undefined) notices.push({ text: harmlessLine(owner), while: () => first?.access === access })
  return notices
}

function ownerNotice({ access, handle }: OpenedSession): string | undefined {
  if (access.type === 'attached') return `The session runs at ${access.where}; this is one of its screens.`
  if (access.type !== 'read-only') return undefined
  const isOwned = handle.state('read_only')?.owner !== undefined
  return isOwned
    ? `${access.reason} You can watch it here, and write as soon as that process has closed it.`
    : access.reason
}
