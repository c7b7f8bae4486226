import { httpClientContract } from '../../../test/contract/http-client.ts'
import { fetchHttp } from './fetch-http.ts'

httpClientContract('fetch', fetchHttp)
