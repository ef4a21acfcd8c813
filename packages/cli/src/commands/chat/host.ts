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

/** Sessions that this terminal owns, and the way to those that others own. */
export function openChatHost({ io, store, flags, problems }: ChatHostOptions): Promise<SessionHost> {
  return SessionHost.open({
    io,
    store,
    owner: 'terminal',
    flags,
    window: 200,
    clientName: 'terminal',
    // The notices name the problems of the settings as they are, without a source: the same sentence is shown once.
    onProblem: ({ source, message }) => problems.add(source === 'settings' ? message : `${source}: ${message}`),
  })
}

/** What was said on the command line, but for the model: that has to be found. */
export function flagsOf(invocation: Invocation): SettingsInput {
  const mode = textOption(invocation, 'permission-mode') as PermissionMode | undefined
  const thinkingLevel = textOption(invocation, 'thinking') as ThinkingLevel | undefined
  return { ...(mode && { permissions: { mode } }), ...(thinkingLevel && { thinkingLevel }) }
}

/** The same for a session that has made its choices already. */
export function choiceOf({ thinkingLevel, permissions }: SettingsInput): Choice {
  return { ...(thinkingLevel && { thinkingLevel }), ...(permissions?.mode && { mode: permissions.mode }) }
}
