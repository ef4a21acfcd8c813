import { onTestFinished } from 'vitest'
import { pair, parseServerLink } from '../../packages/cli/src/host/pair.ts'
import { startChild, type Child } from '../../packages/cli/src/host/testing/child.ts'
import type { FakeHome } from '../../packages/cli/src/testing/fake-home.ts'

/** `tapetree serve` in its own process, and a paired client. */
export interface Served {
  child: Child
  url: string
  token: string
  /** The parsed body of the response. A body makes it a POST. */
  ask: (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Record<string, unknown>>
  /** Resolves with its exit code and its log. */
  stop: () => Promise<{ code: number | string; log: string }>
}

export async function serve(home: FakeHome, ...args: string[]): Promise<Served> {
  const program = new URL('../../packages/cli/src/main.ts', import.meta.url)
  const child = startChild(program, ['serve', '--json', '--port', '0', ...args], home)
  onTestFinished(() => child[Symbol.asyncDispose]())
  let log = ''
  child.process.stderr.on('data', (text: Buffer) => (log += text.toString()))
  const { pairing_link: text } = JSON.parse(await child.line()) as { pairing_link: string }
  const link = parseServerLink(text)
  if (!link) throw new Error(text)
  const { url } = link
  const { token } = await pair(link)
  return {
    child,
    url,
    token,
    ask: async (path, body, headers = {}) => {
      const response = await fetch(new URL(path, url), {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      })
      return (await response.json()) as Record<string, unknown>
    },
    stop: async () => {
      child.process.kill('SIGTERM')
      return { code: await child.ended, log }
    },
  }
}

/** The seq of the next line of this type after another. */
export async function untilLine(
  served: Served,
  id: string,
  { type, after: start = 0 }: { type: string; after?: number },
): Promise<number> {
  let after = start
  for (;;) {
    const page = await served.ask(`/api/sessions/${id}/events?after=${after}&wait=60`)
    if (!page['events']) throw new Error(JSON.stringify(page))
    const events = page['events'] as { seq: number; type: string }[]
    const found = events.find((event) => event.type === type)
    if (found) return found.seq
    after = events.at(-1)?.seq ?? after
  }
}
