// Types of provider packages that the documentation uses and the repository does not install: only what its code blocks need, as the
// packages for AI SDK 7 declare it.
declare module '@ai-sdk/amazon-bedrock' {
  import type { LanguageModelV4 } from '@ai-sdk/provider'
  export function createAmazonBedrock(settings?: {
    region?: string
    apiKey?: string
    accessKeyId?: string
    secretAccessKey?: string
    sessionToken?: string
  }): (modelId: string) => LanguageModelV4
}

declare module '@ai-sdk/azure' {
  import type { LanguageModelV4 } from '@ai-sdk/provider'
  export function createAzure(settings?: {
    resourceName?: string
    baseURL?: string
    apiKey?: string
    apiVersion?: string
    fetch?: typeof globalThis.fetch
  }): (deploymentId: string) => LanguageModelV4
}

declare module '@ai-sdk/google-vertex' {
  import type { LanguageModelV4 } from '@ai-sdk/provider'
  export function createGoogleVertex(settings?: {
    project?: string
    location?: string
    apiKey?: string
  }): (modelId: string) => LanguageModelV4
}

declare module '@ai-sdk/google-vertex/anthropic' {
  import type { LanguageModelV4 } from '@ai-sdk/provider'
  export function createGoogleVertexAnthropic(settings?: {
    project?: string
    location?: string
  }): (modelId: string) => LanguageModelV4
}
