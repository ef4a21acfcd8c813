import type { PermissionMode, SettingsInput, ThinkingLevel } from '@tapetree/agent'
import type { Choice } from '@tapetree/client'
import { textOption, type Invocation } from '../../command-line/command.ts'

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
