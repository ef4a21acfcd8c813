import { configFolder } from '@tapetree/agent/settings'
import { describeChange, McpServers, PinFile, sandboxesOf, type McpServerState } from '@tapetree/agent/mcp'
import { flag, type CommandRun } from '../../command-line/command.ts'
import { didYouMean } from '../../text/did-you-mean.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { harmless, harmlessLine } from '../../text/harmless.ts'
import { askLine, isInteractive, notify, write, printJson, type Io } from '../../command-line/io.ts'
import { placesOf, sandboxPlaceOf } from '../../host/places.ts'
import { surroundingsOf, type Surroundings } from '../../host/surroundings.ts'
import { outputTable } from '../../text/output-table.ts'

export const listServers: CommandRun = async (invocation, io) => {
  const found = await surroundingsOf(io, { cwd: io.cwd })
  await using servers = start(found.settings.values.mcpServers, found, io)
  await servers.settled()
  const states = servers.states()
  if (flag(invocation, 'json')) {
    await printJson(io, {
      servers: states.map(({ server, state }) => ({ server, state: state.type, says: wordsFor(state) })),
    })
  } else if (states.length === 0) {
    await write(io.stderr, 'The settings of this folder have no MCP servers.\n')
  } else {
    const columns = [{ title: 'SERVER' }, { title: 'STATE' }, { title: '', flexible: true }]
    const rows = states.map(({ server, state }) => [harmlessLine(server), state.type, harmlessLine(wordsFor(state))])
    await write(io.stdout, outputTable(columns, rows, io.stdout.columns))
  }
  return exitCodes.ok
}

export const acceptServer: CommandRun = async (invocation, io) => {
  const [name = ''] = invocation.positionals
  const found = await surroundingsOf(io, { cwd: io.cwd })
  const all = found.settings.values.mcpServers
  const settings = Object.hasOwn(all, name) ? all[name] : undefined
  if (!settings) {
    const known = Object.keys(all)
    throw usageFailure(
      `There is no MCP server ${JSON.stringify(harmlessLine(name))} in the settings of this folder.${didYouMean(name, known)}`,
      ['tapetree mcp list'],
    )
  }
  await using servers = start({ [name]: settings }, found, io)
  const accepted: string[] = []
  for (;;) {
    await servers.settled()
    const state = servers.states()[0]?.state
    if (state?.type !== 'changed') {
      if (state?.type !== 'ready') throw notReady(name, state)
      await say(accepted.length > 0 ? `Accepted ${name} as it is now.` : `${name} has not changed.`, { accepted })
      return exitCodes.ok
    }
    if (!flag(invocation, 'json')) await write(io.stderr, changeText(name, state))
    if (!flag(invocation, 'yes') && !(await confirm(io))) {
      throw new Failure(exitCodes.permissionNeeded, `${name} was not accepted.`, {
        type: 'not-accepted',
        next: [`tapetree mcp accept ${name} --yes`],
      })
    }
    accepted.push(describeChange(state.change))
    await servers.accept(name, state.change.sha256)
  }

  async function say(sentence: string, result: Record<string, unknown>): Promise<void> {
    if (flag(invocation, 'json')) await printJson(io, { server: name, ...result })
    else await write(io.stdout, `${harmlessLine(sentence)}\n`)
  }
}

type Servers = Parameters<typeof McpServers.start>[0]['servers']

/** In the same sandbox as in a session. Does not start an unknown server before it is accepted. */
function start(servers: Servers, { settings, trust }: Surroundings, io: Io): McpServers {
  const { home, env, cwd } = io
  const onMissing = (message: string): void => notify(io.stderr, `${message}\n`)
  const place = { home, env, workingFolder: cwd, projectRoot: trust.project.root }
  const { box } = sandboxesOf(sandboxPlaceOf(placesOf(io)), { ...place, settings, onMissing })
  const pins = new PinFile(configFolder(io))
  const limits = { maxRestarts: 0 }
  return McpServers.start({ servers, cwd, environment: env, pins, firstContact: 'ask', limits, box })
}

async function confirm(io: Io): Promise<boolean> {
  if (!isInteractive(io)) return false
  return /^(?:y|yes)$/i.test(await askLine(io, 'Accept it? [y/N] '))
}

/** Everything that the model would receive and the user has not seen. */
function changeText(name: string, { change, tools }: McpServerState & { type: 'changed' }): string {
  const isNew = new Set([...change.changed, ...change.added])
  const lines = tools
    .filter((tool) => isNew.has(tool.name))
    .flatMap((tool) => [
      `  ${harmlessLine(tool.name)}`,
      ...harmless(tool.description)
        .split('\n')
        .map((line) => `    ${line}`),
    ])
  const origin = change.isOriginChanged ? [`  ${harmlessLine(change.pin.origin)}`] : []
  return [`${harmlessLine(name)}: ${harmlessLine(describeChange(change))}`, ...origin, ...lines, ''].join('\n')
}

function wordsFor(state: McpServerState): string {
  switch (state.type) {
    case 'changed':
      return describeChange(state.change)
    case 'failed':
      return state.reason
    case 'ready':
      return state.problems.join(' ')
    case 'signing_in':
      return 'It requires you to sign in.'
    case 'starting':
    case 'closed':
      return ''
    default:
      return state satisfies never
  }
}

function notReady(name: string, state: McpServerState | undefined): Failure {
  return new Failure(exitCodes.runFailed, `${name} cannot be reached, so there is nothing to accept.`, {
    type: 'mcp-server-failed',
    ...(state && { why: harmlessLine(wordsFor(state)) }),
    next: ['tapetree mcp list'],
  })
}
