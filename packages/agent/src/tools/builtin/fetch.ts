import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { limitOutput } from '../output-limit.ts'
import { defineTool, type Tool, type ToolContext, type ToolOutput } from '../tool.ts'
import { answerProblems, problemOf, ToolProblem } from '../tool-problem.ts'
import {
  fetchPage,
  refusalOf,
  refusePrivateLiteral,
  systemNetwork,
  htmlToMarkdown,
  type Network,
  type Page,
} from '../web/fetch-page.ts'

const defaultMaxBytes = 1024 * 1024
const maxMaxBytes = 8 * 1024 * 1024
const defaultTimeoutMs = 30_000

const schema = z.object({
  url: z
    .string()
    .max(8192)
    .superRefine((url, issues) => {
      const refusal = refusalOf(url)
      if (refusal !== undefined) issues.addIssue(refusal)
    })
    .describe('The address, beginning with http:// or https://.'),
  maxBytes: z
    .int()
    .min(1)
    .max(maxMaxBytes)
    .optional()
    .describe(`The maximum number of bytes to fetch; default ${defaultMaxBytes}.`),
})

type FetchInput = z.output<typeof schema>

export interface FetchOptions extends Partial<Network> {
  /** For the whole call, including redirects and conversion. */
  timeoutMs?: number
}

export function fetchTool({ timeoutMs = defaultTimeoutMs, ...network }: FetchOptions = {}): Tool {
  return defineTool({
    name: 'fetch',
    description: descriptionOf('fetch'),
    schema,
    // It changes nothing locally, but sends data to other servers.
    readOnly: false,
    replay: 'safe',
    access: ({ url }) => [{ type: 'fetch', url: new URL(url).href }],
    preflight: ({ url }) => problemOf(() => refusePrivateLiteral(new URL(url), { ...systemNetwork, ...network })),
    run: (input, context) =>
      answerProblems(async () => {
        const timeout = AbortSignal.timeout(timeoutMs)
        const signal = AbortSignal.any([context.signal, timeout])
        try {
          return await fetchAsMarkdown(input, { network: { ...systemNetwork, ...network }, signal, context })
        } catch (error) {
          context.signal.throwIfAborted()
          if (!timeout.aborted) throw error
          throw new ToolProblem(`${input.url} took longer than ${timeoutMs / 1000} seconds.`, { cause: error })
        }
      }),
  })
}

interface FetchParts {
  network: Network
  signal: AbortSignal
  context: ToolContext
}

async function fetchAsMarkdown(
  { url, maxBytes = defaultMaxBytes }: FetchInput,
  { network, signal, context }: FetchParts,
): Promise<ToolOutput> {
  const page = await fetchPage({ url, maxBytes, network, signal })
  if (page.type === 'moved') {
    return { content: `${page.url} redirects to another site: ${page.to}. Fetch that URL if you want it.` }
  }
  const text = await textOf(page, signal)
  const cut = page.isCut ? `\n\n[Only the first ${maxBytes} bytes were fetched.]` : ''
  const content = `${headOf(page)}\n\n${await limitOutput(text, context)}${cut}`
  return page.status >= 200 && page.status < 300 ? { content } : { content, isError: true }
}

type FetchedPage = Extract<Page, { type: 'page' }>

function headOf({ url, status, statusText, contentType, body }: FetchedPage): string {
  const answer = status === 200 ? '' : `${[status, statusText].join(' ').trim()}, `
  return `${url} (${answer}${contentType || 'no content type'}, ${body.length} bytes)`
}

async function textOf(page: FetchedPage, signal: AbortSignal): Promise<string> {
  const mediaType = page.contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  if (page.body.length === 0) return '(The response has no content.)'
  if (isHtml(mediaType)) return htmlToMarkdown({ html: decode(page), url: page.url }, signal)
  if (isText(mediaType) || (mediaType === '' && !page.body.includes(0))) return decode(page)
  throw new ToolProblem(`${page.url} is ${mediaType || 'not text'}, which cannot be shown as text.`)
}

function isHtml(mediaType: string): boolean {
  return mediaType === 'text/html' || mediaType === 'application/xhtml+xml'
}

function isText(mediaType: string): boolean {
  return (
    mediaType.startsWith('text/') ||
    /^application\/(?:.+\+)?(?:json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-ndjson|x-sh|sql|graphql)$/.test(
      mediaType,
    )
  )
}

/** Decodes with the charset of the response, or else of the page itself. */
function decode({ contentType, body }: FetchedPage): string {
  const declared = /charset=["']?([\w-]+)/i
  const label = declared.exec(contentType)?.[1] ?? declared.exec(body.toString('latin1', 0, 1024))?.[1]
  try {
    return new TextDecoder(label ?? 'utf-8').decode(body)
  } catch {
    // Unknown charset: most text is UTF-8.
    return new TextDecoder().decode(body)
  }
}
