import { expect, test } from 'vitest'
import { boundedFetch, foreignUrlProblem } from './bounded-fetch.ts'

test.each([
  ['https://login.example.com/', 'https://example.com/mcp', true],
  ['http://login.example.com/', 'https://example.com/mcp', false],
  ['http://169.254.169.254/latest/', 'https://example.com/mcp', false],
  ['http://127.0.0.1:2375/', 'https://example.com/mcp', false],
  ['https://localhost/', 'https://example.com/mcp', false],
  ['http://127.0.0.1:9000/', 'http://localhost:8000/mcp', true],
  ['file:///etc/passwd', 'http://localhost:8000/mcp', false],
])('whether %s is asked because %s says so: %s', async (url, server, isAsked) => {
  const serverUrl = new URL(server)
  expect(foreignUrlProblem(new URL(url), serverUrl) === undefined).toBe(isAsked)
  if (isAsked) return
  const bounded = boundedFetch({ serverUrl, headers: {}, maxMessageBytes: 1 })
  await expect(bounded(url)).rejects.toThrow('is not asked')
})
