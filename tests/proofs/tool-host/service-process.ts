// One server of a service in a process of its own, made to be killed. Its sessions work on tool hosts; only the model follows
// a script.
import { join } from 'node:path'
import { systemClock } from '@tapetree/agent/run'
import type { ModelRequest } from '@tapetree/agent/models'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '@tapetree/agent/testing'
import {
  createCodingSession,
  createLog,
  defaultTenant,
  LiveSessions,
  NatsBus,
  openCodingDriver,
  startServer,
} from '@tapetree/server'
import { ToolHosts } from '@tapetree/server/tool-hosts'
import { openNodeStore } from '../../../packages/cli/src/host/node-store.ts'
import type { NodeOptions, Order, Word } from '../takeover/words.ts'
import { callOf, jobOf, type Job } from './calls.ts'

process.on('message', (order: Order) => {
  if (order.type !== 'serve') return
  void serve(order).catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
// Nobody is left to serve.
process.once('disconnect', () => process.exit(0))
say({ type: 'loaded' })

async function serve({ node, database, busUrl, folder }: NodeOptions): Promise<void> {
  if (typeof database !== 'string') throw new TypeError('This server uses one database.')
  const log = createLog({ level: 'info' })
  const url = `${database}?application_name=${node}`
  const places = { sessions: join(folder, 'sessions') }
  const { store } = await openNodeStore({ type: 'postgres', url, shown: url }, places, { node })
  const bus = await NatsBus.open({ node, url: busUrl, report: (problem) => log.warn({ source: 'bus' }, problem) })
  const toolHosts = new ToolHosts({ bus })
  const model = plannedModel()
  const sessions = new LiveSessions({
    store,
    create: (options) => createCodingSession(store, options),
    openDriver: (id) =>
      openCodingDriver(id, {
        ...{ store, home: folder, env: {}, models: model, workspaces: toolHosts.of(defaultTenant) },
        flags: { permissions: { mode: 'auto' }, limits: { run: { turns: 1_000_000 } } },
      }),
  })
  const server = await startServer({
    tenants: new Map([[defaultTenant, sessions]]),
    authenticate: () => ({ id: 'proof', tenant: defaultTenant, role: 'drive' }),
    bus,
    toolHosts,
    api: { roots: () => [folder] },
    recovery: 'resume',
    log,
  })
  say({ type: 'serving', url: server.url })
}

function plannedModel(): ScriptedModel {
  const model: ScriptedModel = scriptedModel([], {
    clock: systemClock,
    otherwise: (request) => {
      model.requests.length = 0 // nobody reads them, and they are many
      return answerTo(request)
    },
  })
  return model
}

/** By what it is shown alone, so that a resumed run goes the same way. */
function answerTo({ messages }: ModelRequest): ScriptBuilder {
  const { job, done, jobId } = progressOf(messages)
  if (done >= job.calls) return script().text(`Done: ${job.tag}.`)
  const { tool, input } = callOf(job, done + 1, jobId)
  return script()
    .text('Next. ')
    .toolCall(`${job.tag}-${done + 1}`, tool, input)
}

function progressOf(messages: ModelRequest['messages']): { job: Job; done: number; jobId: string | undefined } {
  let done: number | undefined
  let jobId: string | undefined
  for (const { role, content } of messages.toReversed()) {
    for (const block of content) {
      if (block.type === 'tool_use') done ??= Number(block.toolUse.id.split('-').at(-1))
      if (block.type === 'tool_result') jobId ??= /background as (job-\w+)/.exec(JSON.stringify(block.toolResult))?.[1]
      if (role !== 'user' || block.type !== 'text') continue
      const job = jobOf(block.text.content)
      if (job) return { job, done: done ?? 0, jobId }
    }
  }
  throw new Error('The model has no job.')
}

function say(word: Word): void {
  process.send?.(word)
}
