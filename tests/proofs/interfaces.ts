import { execFile } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { pair, parseServerLink } from '../../packages/cli/src/host/pair.ts'
import { startChild } from '../../packages/cli/src/host/testing/child.ts'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { installTools } from '../../scripts/release/lint-packages.ts'
import { call, say } from '../peers/answers.ts'

export const name = 'interfaces'
export const claim =
  'redocly accepts the OpenAPI document of a server, a client generated from it compiles and works, and promtool accepts the metrics.'

const toolFolder = resolve(import.meta.dirname, '../../tools/interfaces')

/** Serves a session with a run, then gives the document and the metrics to the tools of others, and broken ones as a control. */
export async function run({ say: report, temporaryFolder }: FigureContext): Promise<FigureResult> {
  await installTools(toolFolder)
  const folder = await temporaryFolder()
  await using home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  home.provider.script(call({ id: 'call-1', name: 'bash', input: { command: 'true' } }), say('Done.'))
  const program = new URL('../../packages/cli/src/main.ts', import.meta.url)
  await using child = startChild(program, ['serve', '--json', '--port', '0'], home)
  const { pairing_link: link } = JSON.parse(await child.line()) as { pairing_link: string }
  const parsed = parseServerLink(link)
  if (!parsed) throw new Error(`Not a pairing link: ${link}`)
  const { token } = await pair(parsed)
  const server = { url: parsed.url, token, cwd: home.cwd }

  const document = await textOf(server, '/api/openapi.json')
  const api = JSON.parse(document) as { paths: Record<string, object>; components: { schemas: object } }
  const file = join(folder, 'openapi.json')
  await writeFile(file, document)
  const inDocument = await Promise.all([
    lintDocument(file),
    tryGeneratedClient(folder, server),
    missedInDocument(folder, document),
  ])
  const metrics = await textOf(server, '/metrics')
  const inMetrics = await Promise.all([checkMetrics(metrics), missedInMetrics(metrics)])
  const problems = [...inDocument, ...inMetrics].flat()

  child.process.kill('SIGTERM')
  const code = await child.ended
  if (code !== 0) problems.push(`The server ended with ${code}.`)
  for (const problem of problems) report(`PROBLEM ${problem}`)
  const figures = {
    operations: Object.values(api.paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0),
    schemas: Object.keys(api.components.schemas).length,
    metrics: metrics.split('\n').filter((line) => line.startsWith('# TYPE')).length,
    problems: problems.length,
  }
  report(`${figures.operations} operations, ${figures.schemas} named schemas, ${figures.metrics} metrics`)
  return { ok: problems.length === 0, figures }
}

interface Served {
  url: string
  token: string
  cwd: string
}

async function textOf({ url, token }: Served, path: string): Promise<string> {
  const response = await fetch(new URL(path, url), { headers: { authorization: `Bearer ${token}` } })
  if (!response.ok) throw new Error(`GET ${path} returned ${response.status}.`)
  return response.text()
}

interface Output {
  stdout: string
  stderr: string
  failed: boolean
}

const execute = promisify(execFile)

/** A program of the tools. It reports nothing to its authors and asks for no newer version. */
async function runTool(tool: string, args: readonly string[], cwd: string): Promise<Output> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const options = { cwd, env, maxBuffer: 64 * 1024 * 1024 }
  return execute(process.execPath, [join(toolFolder, 'node_modules', tool), ...args], options).then(
    ({ stdout, stderr }) => ({ stdout, stderr, failed: false }),
    ({ stdout, stderr }: { stdout: string; stderr: string }) => ({ stdout, stderr, failed: true }),
  )
}

/** Warnings count too. */
async function lintDocument(file: string): Promise<string[]> {
  const { stdout, stderr } = await runTool('@redocly/cli/bin/cli.js', ['lint', file, '--format', 'json'], toolFolder)
  try {
    const { problems } = JSON.parse(stdout) as { problems: { ruleId: string; message: string }[] }
    return problems.map(({ ruleId, message }) => `redocly: ${ruleId}: ${message}`)
  } catch {
    return [`redocly: ${stderr}`]
  }
}

/** Generates types from `openapi.json`, compiles a program with them and runs it against the server. */
async function tryGeneratedClient(folder: string, { url, token, cwd }: Served): Promise<string[]> {
  await symlink(join(toolFolder, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  await writeFile(join(folder, 'client.ts'), clientProgram)
  const generated = await runTool('openapi-typescript/bin/cli.js', ['openapi.json', '-o', 'api.d.ts'], folder)
  if (generated.failed) return [`openapi-typescript: ${generated.stderr}`]
  const flags = ['--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes', '--noEmit']
  const modules = ['--module', 'nodenext', '--target', 'es2024', '--lib', 'es2024,dom,dom.iterable']
  const compiled = await runTool('typescript/bin/tsc', [...flags, ...modules, 'client.ts', 'api.d.ts'], folder)
  if (compiled.failed) return [`tsc: ${compiled.stdout}`]
  const ran = await execute(process.execPath, [join(folder, 'client.ts'), url, token, cwd]).then(
    ({ stdout }) => stdout,
    ({ stderr }: { stderr: string }) => stderr,
  )
  return ran === 'completed\n' ? [] : [`The generated client failed: ${ran}`]
}

/** What a stranger writes: everything that it knows of the API comes from the document. */
const clientProgram = `import createClient from 'openapi-fetch'
import type { components, paths } from './api.d.ts'

declare const process: { argv: string[] }
const [, , baseUrl = '', token = '', cwd = ''] = process.argv
const client = createClient<paths>({ baseUrl, headers: { authorization: 'Bearer ' + token } })

const created = await client.POST('/api/sessions', { body: { cwd, prompt: 'Go' } })
if (!created.data) throw new Error(created.error.detail ?? created.error.title)
const { id }: components['schemas']['SessionCreated'] = created.data
let after = 0
for (let hasEnded = false; !hasEnded; ) {
  const { data } = await client.GET('/api/sessions/{id}/events', { params: { path: { id }, query: { after, wait: 60 } } })
  if (!data || typeof data === 'string') throw new Error('no events')
  hasEnded = data.events.some(({ type }) => type === 'run_end')
  after = data.head.seq
}
const { data: list } = await client.GET('/api/sessions', { params: { query: { limit: 10 } } })
if (list?.sessions[0]?.status !== 'idle') throw new Error('the session is not in the list')
const { error, response } = await client.GET('/api/sessions/{id}', { params: { path: { id: 'missing' } } })
if (error?.type !== 'session-not-found' || response.status !== 404) throw new Error('no problem document')
console.log('completed')
`

async function checkMetrics(text: string): Promise<string[]> {
  const checking = execute('promtool', ['check', 'metrics'])
  checking.child.stdin?.end(text)
  return checking.then(
    ({ stderr }) => (stderr === '' ? [] : [`promtool: ${stderr}`]),
    ({ stderr, message }: { stderr?: string; message: string }) => [`promtool: ${stderr ?? message}`],
  )
}

/** Faults that redocly must find; otherwise it checks nothing. */
async function missedInDocument(folder: string, document: string): Promise<string[]> {
  const broken = {
    'two operations with one id': document.replace('"operationId":"listSessions"', '"operationId":"getSession"'),
    'a missing schema': document.replace('#/components/schemas/SessionInfo"', '#/components/schemas/Nobody"'),
  }
  const missed = Object.entries(broken).map(async ([fault, text], index) => {
    const file = join(folder, `broken-${index}.json`)
    await writeFile(file, text)
    const isFound = text !== document && (await lintDocument(file)).length > 0
    return isFound ? [] : [`redocly missed ${fault}`]
  })
  return (await Promise.all(missed)).flat()
}

async function missedInMetrics(metrics: string): Promise<string[]> {
  const wrong = metrics.replace('# TYPE tapetree_lines_total counter', '# TYPE tapetree_lines_total gauge')
  const isFound = wrong !== metrics && (await checkMetrics(wrong)).length > 0
  return isFound ? [] : ['promtool missed a counter that is declared as a gauge']
}
