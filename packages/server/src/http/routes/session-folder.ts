import type { Context } from 'hono'
import { RequestProblem } from '../../util/problem-error.ts'
import type { ApiParts, AppEnv } from '../app.ts'
import { folderInside, rootsFor } from '../bodies/list-files.ts'
import { readSession } from './parameters.ts'

export interface SessionFolder {
  /** On this server. */
  folder: string
  /** The folders that the caller may use. */
  roots: readonly string[]
}

/** The folder of the session of a request. Rejects if its tools work on another machine: the files here are not theirs. */
export async function sessionFolder(context: Context<AppEnv>, parts: ApiParts): Promise<SessionFolder> {
  const roots = await rootsFor(context.get('caller'), parts)
  const id = context.req.param('id') ?? ''
  const { cwd, workspace } = await readSession(context.get('sessions'), id, (session) => ({
    cwd: session.header?.cwd,
    workspace: session.workspace,
  }))
  if (workspace) {
    const place = `${JSON.stringify(workspace.name)} on the tool host ${workspace.hostName}`
    const detail = `The tools of this session work in ${place}. This server does not have its files.`
    throw new RequestProblem(409, 'workspace-elsewhere', detail)
  }
  if (cwd === undefined) throw new RequestProblem(404, 'folder-not-found', 'The session has no folder.')
  return { folder: await folderInside(cwd, roots), roots }
}
