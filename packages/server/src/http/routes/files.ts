import {
  fileContentQuerySchema,
  fileContentSchema,
  filePathQuerySchema,
  gitDiffQuerySchema,
  gitDiffSchema,
  gitStatusSchema,
} from '@tapetree/client/protocol'
import { noRules, type Policy } from '@tapetree/agent/permissions'
import { systemClock } from '@tapetree/agent/run'
import {
  gitDiff,
  GitProblem,
  gitStatus,
  readWorkspaceFile,
  WorkspaceProblem,
  type FilePart,
  type GitWorkspace,
  type WorkspaceFile,
} from '@tapetree/agent/workspace'
import type { Context } from 'hono'
import { homedir } from 'node:os'
import { z } from 'zod'
import { RequestProblem } from '../../util/problem-error.ts'
import type { ApiParts, AppEnv, Routes } from '../app.ts'
import { toWire } from '../bodies/wire-entry.ts'
import { etagOf, json, namesTag } from '../responses.ts'
import { sessionFolder } from './session-folder.ts'
import { sessionParameter } from './parameters.ts'

const defaultPartBytes = 256 * 1024
/** As much as a prompt may have in an image. */
const maxRawBytes = 20 * 1024 * 1024

const tagHeaders = z.object({ 'if-none-match': z.string().max(1000).optional() })
const notModified = { description: 'It has not changed since the version in `If-None-Match`.' }

/** Files and changes in the folder of a session. Nothing of a repository runs, and no secret file is shown. */
export function addFiles(routes: Routes, parts: ApiParts): void {
  routes.add(
    'drive',
    {
      method: 'get',
      path: '/api/sessions/{id}/files/content',
      operationId: 'getFile',
      summary: "Get a file of the session's folder, or a part of it",
      request: { params: sessionParameter, query: fileContentQuerySchema, headers: tagHeaders },
      responses: {
        200: json(fileContentSchema, 'Text with its encoding; of other files only the type.'),
        304: notModified,
      },
    },
    async (context) => {
      const { path, offset = 0, limit = defaultPartBytes } = context.req.valid('query')
      const { policy } = await workspaceOf(context, parts)
      const file = await read(path, { offset, maxBytes: limit }, policy)
      const etag = etagOf([file.version, offset, limit])
      if (namesTag(context.req.valid('header')['if-none-match'] ?? '', etag)) return context.body(null, 304, { etag })
      return context.json(contentOf(file, { path, offset }), 200, { etag, 'cache-control': 'private, no-cache' })
    },
  )
  routes.add(
    'drive',
    {
      method: 'get',
      path: '/api/sessions/{id}/files/raw',
      operationId: 'getFileBytes',
      summary: "Get the bytes of a file of the session's folder",
      request: { params: sessionParameter, query: filePathQuerySchema, headers: tagHeaders },
      responses: {
        200: {
          description: 'An image has its type; other files are downloads.',
          content: { 'application/octet-stream': { schema: z.any().meta({ type: 'string', format: 'binary' }) } },
        },
        304: notModified,
      },
    },
    async (context) => {
      const { path } = context.req.valid('query')
      const { policy } = await workspaceOf(context, parts)
      const { kind, version, bytes, size } = await read(path, { offset: 0, maxBytes: maxRawBytes + 1 }, policy)
      if (size > maxRawBytes)
        throw new RequestProblem(413, 'too-large', `The file has ${size} bytes; the limit is ${maxRawBytes}.`)
      const etag = etagOf([version])
      if (namesTag(context.req.valid('header')['if-none-match'] ?? '', etag)) return context.body(null, 304, { etag })
      // Keeps browsers from rendering it as a page.
      return context.body(new Uint8Array(bytes), 200, {
        'content-type': kind.type === 'image' ? kind.mediaType : 'application/octet-stream',
        'content-disposition': kind.type === 'image' ? 'inline' : 'attachment',
        'content-security-policy': "default-src 'none'; sandbox",
        'x-content-type-options': 'nosniff',
        'cache-control': 'private, no-cache',
        etag,
      })
    },
  )
  routes.add(
    'drive',
    {
      method: 'get',
      path: '/api/sessions/{id}/git',
      operationId: 'getGitStatus',
      summary: "Get the branch and the changed files of the session's folder",
      request: { params: sessionParameter },
      responses: { 200: json(gitStatusSchema, 'Paths are relative to that folder.') },
    },
    async (context) => {
      const status = await withProblems(async () => gitStatus(await gitPlaceOf(context, parts)))
      return context.json(toWire(status) as z.infer<typeof gitStatusSchema>, 200)
    },
  )
  routes.add(
    'drive',
    {
      method: 'get',
      path: '/api/sessions/{id}/git/diff',
      operationId: 'getGitDiff',
      summary: 'Get the change of one file as a unified diff',
      request: { params: sessionParameter, query: gitDiffQuerySchema },
      responses: { 200: json(gitDiffSchema, 'Without hooks, filters and diff programs.') },
    },
    async (context) => {
      const { path, scope = 'all' } = context.req.valid('query')
      const diff = await withProblems(async () => gitDiff(path, scope, await gitPlaceOf(context, parts)))
      return context.json(toWire(diff) as z.infer<typeof gitDiffSchema>, 200)
    },
  )
}

interface Workspace {
  policy: Policy
  /** The folders that the caller may use. */
  roots: readonly string[]
  /** Why git does not run. */
  gitProblem: string | undefined
}

async function workspaceOf(context: Context<AppEnv>, parts: ApiParts): Promise<Workspace> {
  const { tenant } = context.get('caller')
  const { folder, roots } = await sessionFolder(context, parts)
  const { rules = noRules, gitProblem } = (await parts.workspace?.(tenant, folder)) ?? withoutGit
  return { policy: { mode: 'ask', rules, cwd: folder, home: homedir() }, roots, gitProblem }
}

const withoutGit = { rules: undefined, gitProblem: 'This server does not run git.' }

async function gitPlaceOf(context: Context<AppEnv>, parts: ApiParts): Promise<GitWorkspace> {
  const { policy, roots, gitProblem } = await workspaceOf(context, parts)
  if (gitProblem !== undefined) throw new GitProblem('git-refused', gitProblem)
  const { clock = systemClock } = parts
  return { policy, roots, clock, signal: context.req.raw.signal }
}

function read(path: string, part: FilePart, policy: Policy): Promise<WorkspaceFile> {
  return withProblems(() => readWorkspaceFile(path, part, policy))
}

async function withProblems<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof WorkspaceProblem || error instanceof GitProblem)
      throw new RequestProblem(statuses[error.code], error.code, error.message)
    throw error
  }
}

const statuses: Record<WorkspaceProblem['code'] | GitProblem['code'], number> = {
  'outside-folder': 403,
  'secret-file': 403,
  'file-not-found': 404,
  'no-repository': 404,
  'git-refused': 409,
  'git-failed': 409,
  'not-a-file': 422,
}

function contentOf(
  { kind, size, modifiedMs, bytes, nextOffset }: WorkspaceFile,
  { path, offset }: { path: string; offset: number },
): z.infer<typeof fileContentSchema> {
  const file = { path, size, modified: new Date(modifiedMs).toISOString() }
  if (kind.type === 'image') return { ...file, type: 'image', media_type: kind.mediaType }
  if (kind.type === 'binary') return { ...file, type: 'binary' }
  const text = offset === 0 ? bytes.subarray(kind.bomLength) : bytes
  return {
    ...file,
    type: 'text',
    encoding: kind.encoding,
    content: new TextDecoder(kind.encoding, { ignoreBOM: true }).decode(text),
    is_exact: isValid(text, kind.encoding),
    offset,
    next_offset: nextOffset ?? null,
  }
}

function isValid(bytes: Uint8Array, encoding: string): boolean {
  try {
    new TextDecoder(encoding, { fatal: true }).decode(bytes)
    return true
  } catch {
    // It has bytes that are no text, which the content shows as U+FFFD.
    return false
  }
}
