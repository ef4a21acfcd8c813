import type { Settings } from '../settings/built-in.ts'
import type { LoadedSettings } from '../settings/layers.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'
import type { RunSettings } from '../run/run-settings.ts'

/** What the settings say of a session. */
export function optionsFrom(
  { values, rules, origins, maxMode }: LoadedSettings,
  home: string,
): Omit<AgentSessionOptions, 'store' | 'models'> {
  const { user, project, trustsProject } = rules
  return {
    ...(values.model !== undefined && { model: splitModel(values.model) }),
    ...(values.thinkingLevel !== undefined && { thinkingLevel: values.thinkingLevel }),
    ...(values.smallModel !== undefined && { smallModel: splitModel(values.smallModel) }),
    ...(values.fallbackModel !== undefined && { fallbackModel: splitModel(values.fallbackModel) }),
    // Only the command line is about this session; all other settings are defaults for any session.
    ...(origins.get('permissions.mode')?.layer === 'flags'
      ? { mode: values.permissions.mode }
      : { defaultMode: values.permissions.mode }),
    ...(maxMode && { maxMode }),
    policy: () => ({ home, rules: { user, project, trustsProject } }),
    settings: () => runSettingsOf(values),
    ...(values.shellPrefix !== undefined && { shellPrefix: values.shellPrefix }),
  }
}

function runSettingsOf(values: Settings): Partial<RunSettings> {
  return {
    runLimits: values.limits.run,
    sessionLimits: values.limits.session,
    compaction: values.compaction,
    retry: values.retry,
    steerPolicy: values.steerPolicy,
    followUpDelayMs: values.conversations.queue.delay_seconds * 1000,
    sendsFollowUps: values.conversations.queue.enabled,
    reasoning: values.reasoning,
    ...(values.maxOutputTokens !== undefined && { maxOutputTokens: values.maxOutputTokens }),
    ...(values.temperature !== undefined && { temperature: values.temperature }),
  }
}

function splitModel(reference: string): { provider: string; modelId: string } {
  const slash = reference.indexOf('/')
  return { provider: reference.slice(0, slash), modelId: reference.slice(slash + 1) }
}
