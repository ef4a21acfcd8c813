import { allTools } from '@tapetree/agent'
import { registryModels, type ModelRegistry } from '@tapetree/agent/models'
import type { LoadedSettings, SettingsInput } from '@tapetree/agent/settings'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure, usageFailure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { surroundingsOf } from '../host/surroundings.ts'
import type { Io } from '../command-line/io.ts'

interface SetupQuestion {
  io: Pick<Io, 'cwd' | 'home' | 'env'>
  flags: SettingsInput
  /** As typed. */
  model: string | undefined
  toolNames: readonly string[] | undefined
  /** False if the session already has a model. */
  isNew: boolean
}

export interface Setup {
  /** The resolved model. */
  model?: { provider: string; modelId: string }
  /** A sentence each. */
  notices: string[]
}

/** Checks that a run can start before anything is created: readable settings, a model and its key. Uses no network. */
export async function checkSetup(question: SetupQuestion): Promise<Setup> {
  const { io, flags, toolNames, isNew, model: typed } = question
  const { trust, settings, registry } = await surroundingsOf(io, { cwd: io.cwd, flags })
  refuseMalformed(settings)
  const { values } = settings
  if (toolNames) checkToolNames(toolNames, { hasOthers: hasForeignTools(settings) })
  const isTrusted = trust.state === 'trusted' || trust.state === 'nothing-to-trust'
  const root = harmlessLine(trust.project.root)
  const notices = isTrusted ? [] : [`Ignoring the project settings of ${root}, because you have not trusted them.`]
  const wanted = typed ?? (isNew ? (values.model ?? 'any') : undefined)
  // Extensions may add models and are not started for this: an unknown model may be theirs.
  const model = await usableModel(registry, wanted, values.modelCycle).catch((error: unknown) => {
    if (values.extensions.length === 0) throw error
    return typed === undefined ? undefined : splitReference(typed)
  })
  return { notices, ...(typed !== undefined && model && { model }) }
}

function splitReference(reference: string): { provider: string; modelId: string } {
  const slash = reference.indexOf('/')
  return { provider: reference.slice(0, Math.max(0, slash)), modelId: reference.slice(slash + 1) }
}

function refuseMalformed({ problems }: LoadedSettings): void {
  const malformed = problems.find(({ type }) => type === 'malformed')
  if (!malformed) return
  throw new Failure(exitCodes.configuration, harmlessLine(malformed.message), {
    type: 'settings-malformed',
    why: 'This file defines the permissions, so tapetree does not run without it.',
    next: ['tapetree config show --origin', 'tapetree doctor'],
  })
}

function hasForeignTools({ values }: LoadedSettings): boolean {
  return values.extensions.length > 0 || Object.keys(values.mcpServers).length > 0
}

function checkToolNames(names: readonly string[], { hasOthers }: { hasOthers: boolean }): void {
  const known = [...allTools().map(({ name }) => name), 'task']
  const unknown = names.find((name) => !name.endsWith('*') && !known.includes(name))
  if (unknown === undefined || hasOthers) return
  throw usageFailure(`There is no tool ${JSON.stringify(harmlessLine(unknown))}. Known tools: ${known.join(', ')}.`, [
    'tapetree run --help',
  ])
}

async function usableModel(
  registry: ModelRegistry,
  wanted: string | undefined,
  cycle: readonly string[],
): Promise<{ provider: string; modelId: string } | undefined> {
  if (wanted === undefined) return undefined
  if (wanted === 'any') return (await registryModels({ registry, cycle }).choices())[0]
  const { provider, id, key } = await registry.find(wanted)
  if (key.type !== 'missing') return { provider, modelId: id }
  throw new Failure(exitCodes.noModel, `There is no key for ${provider}.`, {
    type: 'missing-key',
    why: `The model ${harmlessLine(`${provider}/${id}`)} needs one. You can also set the environment variable ${key.variable}.`,
    next: [`tapetree login ${provider}`, 'tapetree tour'],
  })
}
