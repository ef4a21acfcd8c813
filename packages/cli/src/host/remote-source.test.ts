import { expect, test } from 'vitest'
import { remoteSource } from './remote-source.ts'

test.each(['https://tape.example/agents', 'https://tape.example/agents/'])(
  'every request of an attached chat stays below the path of its server, %s',
  async (baseUrl) => {
    const urls: string[] = []
    const fetch = async (url: string | URL | Request): Promise<Response> => {
      urls.push(String(url instanceof Request ? url.url : url))
      return Response.json({ type: 'session-not-found', title: 'Not found', status: 404 }, { status: 404 })
    }
    const connect = (): never => {
      throw new Error('Nothing connects.')
    }
    const source = remoteSource({ address: { baseUrl, token: 'secret', fetch, connect }, where: baseUrl })
    await Promise.allSettled([source.list({}), source.search('a'), source.archive('s1'), source.create()])
    expect(urls.toSorted()).toEqual([
      'https://tape.example/agents/api/folders',
      'https://tape.example/agents/api/search?q=a',
      'https://tape.example/agents/api/sessions/s1/archive',
      expect.stringMatching(/^https:\/\/tape\.example\/agents\/api\/sessions\?/),
    ])
  },
)
