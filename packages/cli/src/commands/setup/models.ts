import { referenceOf, type ListedModel } from '@tapetree/agent/models'
import { flag, textOption, type CommandRun } from '../../command-line/command.ts'
import { didYouMean } from '../../text/did-you-mean.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { Failure } from '../../command-line/failure.ts'
import { keyHelp } from '../../command-line/failure-of.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import { write, printJson } from '../../command-line/io.ts'
import { outputTable } from '../../text/output-table.ts'
import { snakeNames } from '../../text/json-text.ts'

export const models: CommandRun = async (invocation, io) => {
  const { registry } = await surroundingsOf(io, { cwd: io.cwd })
  const found = await registry.discover(io.signal)
  const provider = textOption(invocation, 'provider')
  if (provider !== undefined && !registry.providers.some(({ id }) => id === provider)) {
    const known = registry.providers.map(({ id }) => id)
    const message = `There is no provider ${JSON.stringify(provider)}.${didYouMean(provider, known)}`
    throw new Failure(exitCodes.noModel, message, { type: 'unknown-provider', next: ['tapetree models'] })
  }
  const listed = (await registry.list())
    .filter((model) => provider === undefined || model.provider === provider)
    .filter((model) => !flag(invocation, 'usable') || isUsable(model))
  if (flag(invocation, 'json')) {
    await printJson(io, snakeNames({ models: listed.map(jsonOf) }))
    return exitCodes.ok
  }
  await write(io.stdout, outputTable(columns, listed.map(rowOf), io.stdout.isTTY ? io.stdout.columns : undefined))
  for (const server of found)
    await write(io.stderr, `${server.name} serves ${server.models.length} models at ${server.baseUrl}.\n`)
  if (!listed.some(isUsable)) {
    await write(io.stderr, `None of them is usable yet. Try:\n${keyHelp.map((command) => `  ${command}\n`).join('')}`)
  }
  return exitCodes.ok
}

const columns = [
  { title: 'MODEL' },
  { title: 'NAME', flexible: true },
  { title: 'CONTEXT', align: 'right' },
  { title: 'OUTPUT', align: 'right' },
  { title: '$ IN', align: 'right' },
  { title: '$ OUT', align: 'right' },
  { title: 'KEY' },
] as const

function rowOf(model: ListedModel): string[] {
  const { name, contextWindow, maxOutputTokens, prices, key } = model
  return [
    harmlessLine(referenceOf(model)),
    harmlessLine(name),
    tokens(contextWindow),
    tokens(maxOutputTokens),
    prices ? String(prices.input) : '',
    prices ? String(prices.output) : '',
    keyText(key),
  ]
}

function keyText(key: ListedModel['key']): string {
  if (key.type === 'found') return `from ${harmlessLine(key.origin)}`
  return key.type === 'missing' ? `missing (${key.variable})` : 'not needed'
}

function isUsable({ key }: ListedModel): boolean {
  return key.type !== 'missing'
}

function tokens(count: number): string {
  return count >= 1000 ? `${Math.round(count / 1000)}k` : String(count)
}

function jsonOf(model: ListedModel): object {
  const { provider, id, name, contextWindow, maxOutputTokens, thinkingLevels, images, prices, key } = model
  return {
    reference: referenceOf(model),
    provider,
    id,
    name,
    contextTokens: contextWindow,
    outputTokens: maxOutputTokens,
    thinkingLevels,
    images,
    ...(prices && { prices }),
    isUsable: isUsable(model),
    key,
  }
}
