import type { SettingsInput, PermissionMode, ThinkingLevel } from '@tapetree/agent'
import type { SessionStore } from '@tapetree/session'
import { SessionHost } from '../../host/session-host.ts'
import type { Io } from '../../command-line/io.ts'
import type { ChatProblems } from './problems.ts'
import type { Choice } from '@tapetree/client'
import { textOption, type Invocation } from '../../command-line/command.ts'

export interface ChatHostOptions {
  io: Io
  store: SessionStore
  flags: SettingsInput
  problems: Pick<ChatProblems, 'add'>
}

/** Sessions that this terminal owns, and access to those of other processes. */
export function openChatHost({ io, store, flags, problems }: ChatHostOptions): Promise<SessionHost> {
  return SessionHost.open({
    io,
    store,
    owner: 'terminal',
    flags,
    window: 200,
    clientName: 'terminal',
    // Notices describe setting problems without a source, so that the same sentence appears once.
    onProblem: ({ source, message }) => problems.add(source === 'settings' ? message : `${source}: ${message}`),
  })
}

/** Choices from the command line, except for the model, which must be looked up. */
export function flagsOf(invocation: Invocation): SettingsInput {
  const mode = textOption(invocation, 'permission-mode') as PermissionMode | undefined
  const thinkingLevel = textOption(invocation, 'thinking') as ThinkingLevel | undefined
  return { ...(mode && { permissions: { mode } }), ...(thinkingLevel && { thinkingLevel }) }
}

/** The same, for a session that already has its own choices. */
export function choiceOf({ thinkingLevel, permissions }: SettingsInput): Choice {
  return { ...(thinkingLevel && { thinkingLevel }), ...(permissions?.mode && { mode: permissions.mode }) }
}
