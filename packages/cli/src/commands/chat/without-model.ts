import { registryModels, RegistryError } from '@tapetree/agent'
import { stylesFor } from '../../command-line/color.ts'
import type { Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { askLine, write, type Io } from '../../command-line/io.ts'
import type { Surroundings } from '../../host/surroundings.ts'

/** How a user without a key continues. */
export type WayIn =
  /** `model`: a local model, just chosen. */
  { type: 'chat'; model?: string } | { type: 'leave'; code: ExitCode }

const maxOffered = 20

/** Asks only if no model is usable, instead of failing because of a missing key. */
export async function offerWaysIn(around: Surroundings, invocation: Invocation, io: Io): Promise<WayIn> {
  const problem = await whyNoModel(around)
  if (problem === undefined) return { type: 'chat' }
  const local = await localModels(around)
  await write(io.stderr, menu(problem, local, io))
  switch (await askLine(io, 'Which one? [1-3, Enter to quit] ')) {
    case '1': {
      const { tour } = await import('../setup/tour.ts')
      return { type: 'leave', code: await tour({ ...invocation, values: {}, positionals: [] }, io) }
    }
    case '2':
      return local.length > 0 ? chooseLocal(local, io) : sayHowToServe(io)
    case '3':
      await write(io.stderr, whereToPutKeys(around))
      return { type: 'leave', code: exitCodes.noModel }
    default:
      return { type: 'leave', code: exitCodes.noModel }
  }
}

/** Undefined if the model of a new session can be opened. */
async function whyNoModel({ settings, registry }: Surroundings): Promise<string | undefined> {
  const { model, modelCycle: cycle, extensions } = settings.values
  // Extensions may add models, but are not started for this.
  if (extensions.length > 0) return undefined
  try {
    if (model === undefined) await registryModels({ registry, cycle }).choices()
    else {
      const { key, provider, id } = await registry.find(model)
      if (key.type === 'missing') return `There is no key for ${provider}/${id} (${key.variable} is not set).`
    }
    return undefined
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
    return error.message
  }
}

async function localModels({ registry }: Surroundings): Promise<string[]> {
  const servers = await registry.discover()
  return servers.flatMap(({ id, models }) => models.map((model) => `${id}/${model.id}`)).slice(0, maxOffered)
}

function menu(problem: string, local: readonly string[], { stderr, env }: Pick<Io, 'stderr' | 'env'>): string {
  const { bold, dim } = stylesFor(stderr, env)
  const found = local.length > 0 ? local.slice(0, 3).map(harmlessLine).join(', ') : 'none found on this machine'
  return [
    harmlessLine(problem),
    '',
    `  ${bold('1')}  take a 60-second tour ${dim('(no key, no network: real tools in a temporary folder)')}`,
    `  ${bold('2')}  use a model on this machine ${dim(`(${found})`)}`,
    `  ${bold('3')}  show how to add a key`,
    '',
  ].join('\n')
}

async function chooseLocal(local: readonly string[], io: Io): Promise<WayIn> {
  const [only] = local
  if (local.length === 1 && only !== undefined) return { type: 'chat', model: only }
  await write(io.stderr, local.map((model, index) => `  ${index + 1}  ${harmlessLine(model)}\n`).join(''))
  const chosen = local[Number(await askLine(io, `Which one? [1-${local.length}] `)) - 1]
  return chosen === undefined ? { type: 'leave', code: exitCodes.noModel } : { type: 'chat', model: chosen }
}

async function sayHowToServe(io: Io): Promise<WayIn> {
  await write(
    io.stderr,
    'No model server answers on this machine. Start Ollama (port 11434), LM Studio (port 1234) or llama.cpp (port ' +
      '8080), or name\n' +
      'any other Chat Completions server: tapetree --model http://127.0.0.1:8000/v1#<model>\n',
  )
  return { type: 'leave', code: exitCodes.noModel }
}

function whereToPutKeys({ registry }: Surroundings): string {
  const lines = registry.providers
    .filter(({ keyVariables }) => keyVariables.length > 0)
    .map(({ id, keyVariables }) => `  ${`tapetree login ${id}`.padEnd(26)}  or set ${keyVariables[0]}\n`)
  return `Keys are stored in the system keyring, or in a file that only you can read:\n${lines.join('')}`
}
