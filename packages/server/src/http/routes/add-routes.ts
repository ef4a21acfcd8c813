import type { ApiParts, Routes } from '../app.ts'
import { addBlobs } from './blobs.ts'
import { addDocumentation } from './documentation.ts'
import { addEvents } from './events.ts'
import { addFiles } from './files.ts'
import { addHealth } from './health.ts'
import { addHistory } from './history.ts'
import { addJobs } from './jobs.ts'
import { addPermissions } from './permissions.ts'
import { addPlaces } from './places.ts'
import { addPush } from './push.ts'
import { addQueue } from './queue.ts'
import { addRuns } from './runs.ts'
import { addSessionFeed } from './session-feed.ts'
import { addSessions } from './sessions.ts'
import { addToolHosts } from './tool-hosts.ts'
import { addUsage } from './usage.ts'
import { addWorkspace } from './workspace.ts'

/** All routes below `/api`, except authentication and the socket. */
export function addRoutes(routes: Routes, parts: ApiParts): void {
  addHealth(routes, parts)
  addSessions(routes, parts)
  addPlaces(routes)
  addRuns(routes)
  addQueue(routes)
  addEvents(routes, parts)
  addSessionFeed(routes, parts)
  addPermissions(routes)
  addBlobs(routes)
  addHistory(routes, parts)
  addUsage(routes, parts.clock)
  addWorkspace(routes, parts)
  addFiles(routes, parts)
  addJobs(routes, parts)
  addToolHosts(routes, parts)
  addPush(routes, parts.push)
  addDocumentation(routes)
}
