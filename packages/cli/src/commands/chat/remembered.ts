import { changeUserSettings, type Origin } from '@tapetree/agent/settings'
import type { Io } from '../../command-line/io.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import type { RememberedChoices, RememberedName, RememberedPlace, RememberedSetting } from '../../tui/chat-services.ts'

interface SettingsOf {
  io: Pick<Io, 'home' | 'env'>
  cwd: string
}

/** Where each choice is in the settings. */
const keys: Record<RememberedName, string> = {
  model: 'model',
  thinkingLevel: 'thinkingLevel',
  mode: 'permissions.mode',
  theme: 'terminal.theme',
}

/** Writes choices to the settings of the user. */
export async function remember(
  choices: RememberedChoices,
  where: RememberedPlace,
  { io: { home, env }, cwd }: SettingsOf,
): Promise<void> {
  if (where === 'everywhere') return changeUserSettings(choices, { home, env })
  const { trust } = await surroundingsOf({ home, env }, { cwd })
  await changeUserSettings(choices, { home, env, project: trust.project.root })
}

/** What new sessions in this folder start with, and where it comes from. */
export async function rememberedSettings({ io, cwd }: SettingsOf): Promise<RememberedSetting[]> {
  const { settings, trust } = await surroundingsOf(io, { cwd })
  const { model, thinkingLevel, permissions, terminal, projects } = settings.values
  const values: Record<RememberedName, string | undefined> = {
    ...{ model, thinkingLevel },
    mode: permissions.mode,
    theme: terminal.theme,
  }
  const here = projects[trust.project.root]
  return (Object.keys(keys) as RememberedName[]).map((name) => {
    const origin = settings.origins.get(keys[name])
    const isOfProject = here?.[name] !== undefined && origin?.layer === 'user'
    return { name, value: values[name], from: originText(origin, isOfProject), isOfProject }
  })
}

/** The source of a value or rule, for people. */
export function originText(origin: Origin | undefined, isOfProject = false): string {
  const { layer = 'built-in', file, line, variable } = origin ?? {}
  if (variable !== undefined) return variable
  if (file !== undefined)
    return `${line === undefined ? file : `${file}:${line}`}${isOfProject ? ', for this project' : ''}`
  if (layer === 'flags') return 'the command line'
  return layer === 'built-in' ? 'default' : layer
}
