// Stands in for the header that is generated for each key, where a test takes a kernel header on the host: the test
// names the constants itself.
#pragma once
