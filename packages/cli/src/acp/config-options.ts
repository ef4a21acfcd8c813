import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk/unstable'
import type { Choice, StateValues } from '@tapetree/client'
import {
  modeMeanings,
  permissionModes,
  thinkingLevels,
  type OfferedModel,
  type PermissionMode,
} from '../session-source.ts'

type Config = StateValues['config']

/** The permission modes, for editors that do not know options. */
export function modesOf({ mode }: Pick<Config, 'mode'>): SessionModeState {
  const availableModes = permissionModes.map((id) => ({ id, name: modeNames[id], description: modeMeanings[id] }))
  return { currentModeId: mode ?? 'ask', availableModes }
}

/** The mode, the model and how long it thinks. Models without a key are left out. */
export function optionsOf(
  { mode, model, thinkingLevel }: Config,
  models: readonly OfferedModel[],
): SessionConfigOption[] {
  const { currentModeId, availableModes } = modesOf({ mode })
  const options: SessionConfigOption[] = [
    {
      type: 'select',
      id: 'mode',
      name: 'Permission mode',
      category: 'mode',
      currentValue: currentModeId,
      options: availableModes.map(({ id: value, ...rest }) => ({ value, ...rest })),
    },
  ]
  if (!model) return options
  const current = `${model.provider}/${model.modelId}`
  const usable = models.filter(({ isUsable, reference }) => isUsable || reference === current)
  const listed = usable.some(({ reference }) => reference === current)
    ? usable
    : [{ reference: current, name: model.modelId }, ...usable]
  options.push({
    type: 'select',
    id: 'model',
    name: 'Model',
    category: 'model',
    currentValue: current,
    options: listed.map(({ reference, name }) => ({ value: reference, name, description: reference })),
  })
  const known = models.find(({ reference }) => reference === current)?.thinkingLevels ?? []
  const level = thinkingLevel ?? 'off'
  const levels = known.includes(level) ? known : [level, ...known]
  if (levels.length > 1)
    options.push({
      type: 'select',
      id: 'thinking',
      name: 'Thinking',
      category: 'thought_level',
      currentValue: level,
      options: levels.map((value) => ({ value, name: value.charAt(0).toUpperCase() + value.slice(1) })),
    })
  return options
}

/** The choice that an editor made, or a sentence about why it is none. */
export function choiceOf(configId: string, value: unknown): Choice | string {
  if (typeof value !== 'string') return `The option ${configId} takes a name.`
  switch (configId) {
    case 'mode': {
      const mode = permissionModes.find((each) => each === value)
      return mode ? { mode } : `There is no permission mode ${JSON.stringify(value)}.`
    }
    case 'thinking': {
      const thinkingLevel = thinkingLevels.find((each) => each === value)
      return thinkingLevel ? { thinkingLevel } : `There is no thinking level ${JSON.stringify(value)}.`
    }
    case 'model': {
      const slash = value.indexOf('/')
      if (slash < 1)
        return `A model is named by its provider and id, such as anthropic/claude, not ${JSON.stringify(value)}.`
      return { model: { provider: value.slice(0, slash), modelId: value.slice(slash + 1) } }
    }
    default:
      return `There is no option ${JSON.stringify(configId)}.`
  }
}

const modeNames: Readonly<Record<PermissionMode, string>> = {
  ask: 'Ask',
  'accept-edits': 'Accept edits',
  sandboxed: 'Sandboxed',
  plan: 'Plan',
  auto: 'Auto',
}
