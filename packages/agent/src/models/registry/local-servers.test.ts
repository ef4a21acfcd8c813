import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { FakeClock } from '../../testing/fake-clock.ts'
import { discoverLocalServers, type LocalServer, type LocalServerId } from './local-servers.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
})

describe('discoverLocalServers', () => {
  test('finds the models of Ollama, with their loaded, configured or maximum context window', async () => {
    const shows: Record<string, unknown> = {
      'loaded:8b': { capabilities: ['completion', 'tools', 'thinking'], model_info: { 'qwen3.context_length': 40960 } },
      'set:8b': { capabilities: ['completion'], parameters: 'stop "<|x|>"\nnum_ctx    16384', model_info: {} },
      'own:8b': { capabilities: ['completion', 'vision'], model_info: { 'llama.context_length': 131072 } },
      'embed:1b': { capabilities: ['embedding'] },
    }
    const server = await serve('ollama', async (request, response) => {
      if (request.url === '/api/tags') {
        json(response, { models: [...Object.keys(shows), 'silent:8b'].map((name) => ({ name, size: 1 })) })
      } else if (request.url === '/api/ps') {
        json(response, { models: [{ name: 'loaded:8b', context_length: 8192 }] })
      } else {
        const { model } = (await bodyOf(request)) as { model: string }
        if (shows[model]) json(response, shows[model])
        else response.writeHead(404).end()
      }
    })
    const [found] = await discover([server])
    expect(found).toEqual({
      ...server,
      baseUrl: `http://127.0.0.1:${server.port}/v1`,
      models: [
        { id: 'loaded:8b', contextWindow: 8192, images: false },
        { id: 'set:8b', contextWindow: 16384, images: false, thinkingLevels: ['off'] },
        { id: 'own:8b', contextWindow: 131072, images: true, thinkingLevels: ['off'] },
        { id: 'silent:8b' },
      ],
    })
  })

  test.each([
    [
      'of today',
      '/api/v1/models',
      {
        models: [
          {
            key: 'qwen3',
            type: 'llm',
            max_context_length: 40960,
            loaded_instances: [{ id: 'qwen3', config: { context_length: 4096 } }],
            capabilities: { vision: false },
          },
          { key: 'nomic', type: 'embedding', max_context_length: 2048, loaded_instances: [] },
        ],
      },
      [{ id: 'qwen3', contextWindow: 4096, images: false }],
    ],
    [
      'before 0.4',
      '/api/v0/models',
      {
        data: [
          { id: 'gemma', type: 'vlm', max_context_length: 32768 },
          { id: 'nomic', type: 'embeddings', max_context_length: 2048 },
        ],
      },
      [{ id: 'gemma', contextWindow: 32768, images: true }],
    ],
    ['with the plain list alone', '/v1/models', { data: [{ id: 'plain' }] }, [{ id: 'plain' }]],
  ])('finds the models of an LM Studio %s', async (_, path, answer, models) => {
    const server = await serve('lmstudio', ({ url }, response) => {
      if (url === path) json(response, answer)
      else response.writeHead(404).end()
    })
    expect((await discover([server]))[0]?.models).toEqual(models)
  })

  test('finds the model of llama.cpp, with the context window it was started with', async () => {
    const server = await serve('llamacpp', ({ url }, response) => {
      if (url === '/props')
        json(response, { default_generation_settings: { n_ctx: 16384 }, modalities: { vision: true } })
      else json(response, { data: [{ id: '/models/my.gguf', meta: { n_ctx_train: 131072 } }] })
    })
    expect((await discover([server]))[0]?.models).toEqual([
      { id: '/models/my.gguf', contextWindow: 16384, images: true },
    ])
  })

  test('all servers together have 300 ms; answers until then count', async () => {
    const clock = new FakeClock()
    const asked = Promise.withResolvers<void>()
    const ollama = await serve('ollama', ({ url }, response) => {
      if (url === '/api/show') asked.resolve()
      else if (url === '/api/ps') response.writeHead(404).end()
      else json(response, { models: [{ name: 'slow:8b' }] })
    })
    const silent = await serve('lmstudio', () => {})
    const discovery = discoverLocalServers({ servers: [ollama, silent], clock })
    expect(await clock.waited()).toBe(300)
    await asked.promise
    clock.advance(300)
    expect((await discovery).map(({ id, models }) => [id, models])).toEqual([['ollama', [{ id: 'slow:8b' }]]])
    expect(clock.waits).toEqual([])
  })

  test('it does not wait after all servers have answered', async () => {
    const clock = new FakeClock()
    expect(await discoverLocalServers({ servers: [await closedPort()], clock })).toEqual([])
    expect(clock.waits).toEqual([])
  })

  test('an abort is passed on', async () => {
    const server = await serve('ollama', () => {})
    const controller = new AbortController()
    const discovery = discoverLocalServers({ servers: [server], clock: new FakeClock(), signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(discovery).rejects.toThrow('enough')
  })

  describe('another program may listen on the port', () => {
    test('a redirect is not followed', async () => {
      const visited: (string | undefined)[] = []
      const elsewhere = await serve('llamacpp', ({ url }, response) => {
        visited.push(url)
        json(response, { models: [{ name: 'stolen' }] })
      })
      const server = await serve('ollama', (_, response) => {
        response.writeHead(302, { location: `http://127.0.0.1:${elsewhere.port}/elsewhere` }).end()
      })
      expect(await discover([server])).toEqual([])
      expect(visited).toEqual([])
    })

    test('an endless response is cut off', async () => {
      const cut = Promise.withResolvers<void>()
      const server = await serve('ollama', ({ url }, response) => {
        if (url !== '/api/tags') {
          response.writeHead(404).end()
          return
        }
        response.on('close', cut.resolve)
        const chunk = ' '.repeat(64 * 1024)
        const write = (): void => {
          while (!response.destroyed && response.write(chunk));
        }
        response.on('drain', write)
        write()
      })
      expect(await discover([server])).toEqual([])
      await cut.promise
    })

    test.each([
      ['text', 'hello'],
      ['nothing', ''],
      ['null', 'null'],
      ['a list', '[]'],
      ['a web page', '<!doctype html>'],
      ['brackets without end', '['.repeat(500_000)],
      ['models that are no list', '{"models":{"length":1e9},"data":"x"}'],
    ])('%s is not a list of models', async (_, body) => {
      const all = await Promise.all(
        (['ollama', 'lmstudio', 'llamacpp'] as const).map((id) => serve(id, (__, response) => void response.end(body))),
      )
      expect(await discover(all)).toEqual([])
    })

    test('models with names that are unsafe to display, or impossible context windows, are left out', async () => {
      const names = ['ok', 'bad\u001B[2J', 'a b', '', 'x'.repeat(300), '\u202Eolleh', '__proto__', 7, null, 'ok']
      const server = await serve('llamacpp', ({ url }, response) => {
        if (url === '/props') json(response, { default_generation_settings: { n_ctx: 'many' }, modalities: 3 })
        else json(response, { data: names.map((id) => ({ id, meta: { n_ctx_train: -5 } })) })
      })
      expect((await discover([server]))[0]?.models).toEqual([{ id: 'ok' }, { id: '__proto__' }])
    })

    test('the number of models and of queries is limited', async () => {
      let questions = 0
      const server = await serve('ollama', ({ url }, response) => {
        if (url === '/api/tags')
          json(response, { models: Array.from({ length: 5000 }, (_, index) => ({ name: `m${index}` })) })
        else {
          if (url === '/api/show') questions++
          response.writeHead(404).end()
        }
      })
      expect((await discover([server]))[0]?.models).toHaveLength(200)
      expect(questions).toBe(32)
    })
  })
})

/** The clock stands still: a busy machine must not change the result. */
async function discover(all: LocalServer[]): ReturnType<typeof discoverLocalServers> {
  return discoverLocalServers({ servers: all, clock: new FakeClock() })
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

async function serve(id: LocalServerId, handle: Handler): Promise<LocalServer> {
  const server = createServer((request, response) => void handle(request, response))
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { id, name: id, port: (server.address() as AddressInfo).port }
}

async function closedPort(): Promise<LocalServer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return { id: 'ollama', name: 'Ollama', port }
}

function json(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString())
}
