module github.com/rategen/rategen/internal/monitoring

go 1.26.0

replace github.com/rategen/rategen => ../..

replace github.com/rategen/rategen/runtime/rateotel => ../../runtime/rateotel

replace github.com/rategen/rategen/runtime/rateprom => ../../runtime/rateprom
